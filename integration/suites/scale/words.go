package scale

import (
	"bytes"
	"io"
	"net/http"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/kubecluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// words is the encoding of an API server: protobuf for built-in kinds, JSON for custom
// resources.
type words struct {
	scheme *runtime.Scheme
	codecs serializer.CodecFactory
}

func newWords() (*words, error) {
	scheme, err := kubecluster.Scheme()
	if err != nil {
		return nil, err
	}
	return &words{scheme, serializer.NewCodecFactory(scheme)}, nil
}

func version(kind cluster.Kind) schema.GroupVersion {
	return schema.GroupVersion{Group: kind.Group, Version: kind.Version}
}

func (w *words) media(kind cluster.Kind) string {
	if slices.Contains([]string{karpenter.Group, karpenter.AWSGroup, karpenter.BufferGroup}, kind.Group) {
		return runtime.ContentTypeJSON
	}
	return runtime.ContentTypeProtobuf
}

func (w *words) serializer(kind cluster.Kind) runtime.SerializerInfo {
	info, _ := runtime.SerializerInfoForMediaType(w.codecs.SupportedMediaTypes(), w.media(kind))
	return info
}

func (w *words) encoder(kind cluster.Kind) runtime.Encoder {
	return w.codecs.WithoutConversion().EncoderForVersion(w.serializer(kind).Serializer, version(kind))
}

func (w *words) list(kind cluster.Kind, items []runtime.Object) (runtime.Object, error) {
	list, err := w.scheme.New(version(kind).WithKind(kind.Kind + "List"))
	if err != nil {
		return nil, err
	}
	return list, meta.SetList(list, items)
}

// stream writes the events of one watch.
type stream struct {
	frames  io.Writer
	objects runtime.Encoder
	events  runtime.Encoder
	flush   func()
	object  bytes.Buffer
	event   bytes.Buffer
}

func (w *words) stream(to http.ResponseWriter, kind cluster.Kind) *stream {
	media, info := w.media(kind), w.serializer(kind)
	if media == runtime.ContentTypeProtobuf {
		media += ";stream=watch"
	}
	to.Header().Set("Content-Type", media)
	to.WriteHeader(http.StatusOK)
	return &stream{
		frames: info.StreamSerializer.NewFrameWriter(to), objects: w.encoder(kind), events: info.StreamSerializer.Serializer,
		flush: func() { _ = http.NewResponseController(to).Flush() },
	}
}

func (s *stream) send(what string, object runtime.Object) error {
	s.object.Reset()
	if err := s.objects.Encode(object, &s.object); err != nil {
		return err
	}
	s.event.Reset()
	if err := s.events.Encode(&metav1.WatchEvent{Type: what, Object: runtime.RawExtension{Raw: s.object.Bytes()}}, &s.event); err != nil {
		return err
	}
	_, err := s.frames.Write(s.event.Bytes())
	return err
}
