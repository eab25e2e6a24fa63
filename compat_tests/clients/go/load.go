// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"sync/atomic"
	"time"

	"github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

// load is what the benchmark asks for: goroutines that send one message after the other.
type load struct {
	Threads    int `json:"threads"`
	WarmupMs   int `json:"warmup-ms"`
	WindowMs   int `json:"window-ms"`
	Properties int `json:"properties"`
}

const bodyBytes = 1024

var userProperties = [][2]string{
	{"tenant", "acme-42"}, {"region", "eu-central-1"}, {"trace", "0af7651916cd43dd8448eb211c80319c"},
}

// measure reports the edges of the measured window, and then what was sent within it, in the form
// of the Java load program.
func measure(given command) error {
	client, err := rocketmq.NewProducer(
		producer.WithNameServer(primitive.NamesrvAddr{given.Namesrv}),
		producer.WithGroupName("go-bench"),
		producer.WithSendMsgTimeout(10*time.Second),
	)
	if err != nil {
		return err
	}
	if err := client.Start(); err != nil {
		return err
	}
	body := make([]byte, bodyBytes)
	for i := range body {
		body[i] = 'x'
	}
	var sent, failed atomic.Int64
	var first atomic.Value
	for i := 0; i < given.Load.Threads; i++ {
		go func() {
			for {
				message := primitive.NewMessage(given.Topic, body)
				for _, pair := range userProperties[:given.Load.Properties] {
					message.WithProperty(pair[0], pair[1])
				}
				result, err := client.SendSync(context.Background(), message)
				if err == nil && result.Status == primitive.SendOK {
					sent.Add(1)
					continue
				}
				failed.Add(1)
				if err != nil {
					first.CompareAndSwap(nil, err.Error())
				}
			}
		}()
	}
	time.Sleep(time.Duration(given.Load.WarmupMs) * time.Millisecond)
	before, start := sent.Load(), time.Now()
	report(map[string]any{"event": "start"})
	time.Sleep(time.Duration(given.Load.WindowMs) * time.Millisecond)
	count, seconds := sent.Load()-before, time.Since(start).Seconds()
	report(map[string]any{"event": "end"})
	report(map[string]any{
		"event": "result", "messages": count, "seconds": seconds, "rate": float64(count) / seconds,
		"failed": failed.Load(), "error": first.Load(), "p50_ms": nil, "p99_ms": nil,
	})
	os.Exit(0) // the goroutines send on; the harness need not wait for them
	return nil
}
