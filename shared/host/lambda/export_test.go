package lambda

var LimitMemory = limitMemory
