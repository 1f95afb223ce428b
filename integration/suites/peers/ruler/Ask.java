import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import software.amazon.event.ruler.Machine;

/** Answers each line {"pattern": "…", "event": "…"} with a line: match, no match, or refused and why. */
public class Ask {
  public static void main(String[] args) throws Exception {
    ObjectMapper json = new ObjectMapper();
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      JsonNode ask = json.readTree(line);
      out.println(answer(ask.get("pattern").asText(), ask.get("event").asText()));
    }
  }

  private static String answer(String pattern, String event) {
    Machine machine = new Machine();
    try {
      machine.addRule("rule", pattern);
    } catch (Exception e) {
      return "refused: " + String.valueOf(e.getMessage()).replaceAll("\\s+", " ");
    }
    try {
      return machine.rulesForJSONEvent(event).isEmpty() ? "no match" : "match";
    } catch (Exception e) {
      return "broken: " + String.valueOf(e).replaceAll("\\s+", " ");
    }
  }
}
