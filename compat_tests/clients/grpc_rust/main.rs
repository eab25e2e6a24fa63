// SPDX-License-Identifier: Apache-2.0

// Sends messages with Apache's gRPC client for Rust, and receives them with a simple consumer, as a
// JSON command in the first argument says. Prints a JSON object for each event.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rocketmq::conf::{ClientOption, ProducerOption, SimpleConsumerOption};
use rocketmq::model::common::{FilterExpression, FilterType};
use rocketmq::model::message::MessageBuilder;
use rocketmq::model::transaction::{Transaction, TransactionResolution};
use rocketmq::{Producer, SimpleConsumer};
use serde_json::{json, Value};

fn client(its: &Value) -> ClientOption {
    let mut option = ClientOption::default();
    option.set_access_url(its["endpoints"].as_str().unwrap());
    option.set_enable_tls(its["tls"].as_bool().unwrap_or(false));
    // The client gives a receive no more time than this, and the original's proxy refuses receives
    // that have less than five seconds.
    option.set_long_polling_timeout(Duration::from_secs(8));
    if let Some(key) = its["access_key"].as_str() {
        option.set_access_key(key);
        option.set_secret_key(its["secret_key"].as_str().unwrap());
    }
    option
}

fn builder(topic: &str, number: i64, how: &str) -> MessageBuilder {
    let body = format!("rust-{number}").into_bytes();
    let made = match how {
        "fifo" => MessageBuilder::fifo_message_builder(topic, body, "one"),
        "delay" => {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
            MessageBuilder::delay_message_builder(topic, body, now.as_secs() as i64 + 4)
        }
        "commit" => MessageBuilder::transaction_message_builder(topic, body),
        _ => MessageBuilder::builder().set_topic(topic).set_body(body),
    };
    made.set_tag("tag").set_keys(vec!["key"])
}

// Makes a file, and waits until it is gone.
async fn pause(path: &str) {
    std::fs::write(path, "").unwrap();
    while std::path::Path::new(path).exists() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

// Sends a message, and again as long as an error may be one of a proxy that comes back.
async fn send(producer: &Producer, topic: &str, number: i64, mut attempts: u32) -> String {
    loop {
        let message = builder(topic, number, "normal").build().unwrap();
        attempts -= 1;
        match producer.send(message).await {
            Ok(receipt) => return receipt.message_id().to_string(),
            Err(error) if attempts > 0 => eprintln!("{error:?}"),
            Err(error) => panic!("{error:?}"),
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

#[tokio::main]
async fn main() {
    let its: Value = serde_json::from_str(&std::env::args().nth(1).unwrap()).unwrap();
    let topic = its["topic"].as_str().unwrap();
    let how = its["how"].as_str().unwrap_or("normal");
    let count = its["count"].as_i64().unwrap();

    let mut option = SimpleConsumerOption::default();
    option.set_topics(vec![topic]);
    option.set_consumer_group(its["group"].as_str().unwrap());
    let mut consumer = SimpleConsumer::new(option, client(&its)).unwrap();
    consumer.start().await.unwrap();

    let mut option = ProducerOption::default();
    option.set_topics(vec![topic]);
    let mut producer = Producer::new_transaction_producer(
        option,
        client(&its),
        Box::new(|_, _| TransactionResolution::COMMIT),
    )
    .unwrap();
    producer.start().await.unwrap();
    for number in 0..count {
        if let Some(path) = its["pause"].as_str() {
            if number == count / 2 {
                pause(path).await;
            }
            println!("{}", json!({"sent": send(&producer, topic, number, 30).await}));
            continue;
        }
        let message = builder(topic, number, how).build().unwrap();
        if how == "commit" {
            let begun = producer.send_transaction_message(message).await.unwrap();
            println!("{}", json!({"sent": begun.message_id()}));
            begun.commit().await.unwrap();
        } else {
            let receipt = producer.send(message).await.unwrap();
            println!("{}", json!({"sent": receipt.message_id()}));
        }
    }
    let all = FilterExpression::new(FilterType::Tag, "*");
    let mut got = 0;
    while got < count {
        let found = consumer.receive_with(topic, &all, 16, Duration::from_secs(30)).await;
        match found {
            Err(error) => {
                eprintln!("{error:?}"); // that there is nothing is an error as well
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
            Ok(messages) => {
                for message in messages {
                    consumer.ack(&message).await.unwrap();
                    let body = String::from_utf8_lossy(message.body()).to_string();
                    println!("{}", json!({"body": body, "tag": message.tag(), "keys": message.keys()}));
                    got += 1;
                }
            }
        }
    }
    for ended in [producer.shutdown().await, consumer.shutdown().await] {
        // A new proxy does not know a client that it has not had a heartbeat of.
        if its["pause"].is_null() {
            ended.unwrap();
        }
    }
}
