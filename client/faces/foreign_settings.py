# SPDX-License-Identifier: Apache-2.0
"""What settings of other clients are called here, or how that is done which they set.

People who come from another client try its settings first: those of the Java client of RocketMQ, of
rocketmq-client-python and of the clients for gRPC; of aiokafka, confluent-kafka and librdkafka; of
pika and of redis-py. Letters count, however they are joined: `bootstrap_servers`,
`bootstrap.servers` and `bootstrapServers` are the same name.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from txrocketmq.remoting.arguments.foreign import Foreign, plain, spelt_otherwise, table_of

_GROUP = "its first argument"
_BODIES = "bodies are bytes: "
_COMMITS = (
    "what a listener has consumed is committed without being asked for, and each message that is"
    " popped is acknowledged by ack"
)
_TOGETHER = (
    "messages that are sent at the same time leave together, and send_batch sends a list of them at"
    " once"
)
_SILENCE = "brokers forget a client of which they hear nothing for two minutes"
_LOGGING = "the client writes to Python's logging, under txrocketmq.client"
_IN_A_CALL = "what waits takes its own timeout, such as send(message, timeout_ms=3000)"

FOREIGN_SETTINGS: Final = (
    # Where the cluster is, and who asks.
    Foreign(
        "bootstrap_servers bootstrap_server metadata_broker_list brokers broker broker_list servers"
        " server hosts host port url uri address addr endpoints endpoint name_server name_servers"
        " name_server_address name_server_addr namesrv namesrv_address"
        "",
        "namesrv_addr",
        "with the addresses of name servers, as in '127.0.0.1:9876;10.0.0.2:9876'",
    ),
    Foreign(
        "name_server_domain ws_addr",
        "namesrv_domain",
        "the HTTP server that says where the name servers are",
    ),
    Foreign("client_id client_name", "instance_name", "the second part of the client's id"),
    Foreign("virtual_host vhost db", "namespace", "a prefix of topics and groups"),
    Foreign(
        "group_id group_name consumer_group producer_group consumer_group_id"
        " producer_group_name consumer_group_name",
        "group",
        _GROUP,
        "administration is not done as a member of a group",
    ),
    Foreign("group_instance_id static_member_id consumer_name", note="members of a group have no"
        " fixed names; instance_name is a part of the client's id"),
    # Accounts and encryption.
    Foreign(
        "sasl_plain_username sasl_username username user access_key_id ak",
        "access_key",
        "the name of the account",
    ),
    Foreign("sasl_plain_password sasl_password password passwd secret access_key_secret sk",
        "secret_key", "the secret of the account"),
    Foreign(
        "credentials session_credentials credentials_provider rpc_hook acl_rpc_hook auth"
        " sasl_mechanism sasl_mechanisms sasl_jaas_config sasl_oauth_token_provider"
        " sasl_kerberos_service_name",
        note="an account is given by access_key and secret_key",
    ),
    Foreign("security_protocol", note="use_tls=True encrypts, and an account is given by access_key"
        " and secret_key"),
    Foreign("ssl ssl_context ssl_options ssl_enabled enable_ssl tls tls_enable is_tls", "use_tls",
        "and certificates are given by tls_trust_cert_path, tls_cert_path and tls_key_path"),
    Foreign("ssl_cafile ssl_ca_certs ssl_ca_location ssl_ca_path cafile ca_certs ssl_truststore"
        "_location", "tls_trust_cert_path", "a file in PEM"),
    Foreign("ssl_certfile ssl_certificate_location certfile ssl_keystore_location",
        "tls_cert_path", "a file in PEM"),
    Foreign("ssl_keyfile ssl_key_location keyfile", "tls_key_path", "a file in PEM"),
    Foreign("ssl_password ssl_key_password ssl_keystore_password", "tls_key_password"),
    Foreign("ssl_check_hostname ssl_endpoint_identification_algorithm ssl_cert_reqs"
        " enable_ssl_certificate_verification", "tls_check_name",
        "and tls_trust_cert_path names the certificates"),
    Foreign("ssl_min_version ssl_ciphers ssl_cipher_suites ssl_crlfile ssl_crl_location",
        note="the client takes what OpenSSL offers from TLS 1.2 on"),
    # Times of the client.
    Foreign("request_timeout_ms request_timeout socket_timeout socket_timeout_ms timeout timeout_ms"
        " mq_client_api_timeout socket_connect_timeout blocked_connection_timeout"
        " connections_max_idle_ms", "send_timeout_ms api_timeout_ms", "in milliseconds"),
    Foreign("metadata_max_age_ms topic_metadata_refresh_interval_ms metadata_refresh_interval_ms"
        " poll_name_server_interval", "poll_name_server_interval_ms"),
    Foreign("heartbeat_interval_ms heartbeat heartbeat_interval heartbeat_broker_interval"
        " health_check_interval", "heartbeat_broker_interval_ms"),
    Foreign("session_timeout_ms session_timeout", note=f"{_SILENCE};"
        " heartbeat_broker_interval_ms says how often they do"),
    Foreign("retry_backoff_ms retry_backoff_max_ms reconnect_backoff_ms reconnect_backoff_max_ms"
        " retry_on_timeout retry_delay socket_keepalive",
        note="the client connects again when it needs to, and repeats a send at once, at another"
        " broker"),
    Foreign("api_version api_version_auto_timeout_ms broker_version_fallback api_version_request"
        " loop io_loop", note="the client finds that out by itself"),
    Foreign("log_level log_path log_dir logger debug log_connection_close", note=_LOGGING),
    Foreign("statistics_interval_ms stats_cb metrics_reporters interceptor_classes interceptors",
        note="txrocketmq.client.opentelemetry has metrics and traces, and hooks see each message"),
    # Producers.
    Foreign("acks request_required_acks required_acks min_insync_replicas",
        note="a send is answered when the broker has stored the message, the broker's setting"
        " flushDiskType says whether on its disk, and send_oneway waits for no answer"),
    Foreign("linger_ms queue_buffering_max_ms batch_num_messages max_batch_size", note=_TOGETHER),
    Foreign("buffer_memory queue_buffering_max_kbytes", "max_in_flight_bytes", "in bytes",
        "only producers hold back what is sent"),
    Foreign("max_in_flight_requests_per_connection max_in_flight_requests max_pending"
        " queue_buffering_max_messages max_in_flight_messages",
        "max_in_flight", "a number of messages", "only producers limit what is on its way"),
    Foreign("compression_type compression_codec compress_type", "compression", "and"
        " compress_body_over_bytes says from which size on",
        "consumers decompress by themselves"),
    Foreign("compress_msg_body_over_howmuch", "compress_body_over_bytes", "",
        "consumers decompress by themselves"),
    Foreign("compress_level", "compression_level", "", "consumers decompress by themselves"),
    Foreign("retries message_send_max_retries retry_times_when_send_failed"
        " retry_times_when_send_async_failed max_attempts retry max_retries max_retry_times"
        " max_reconsume_times",
        "retry_times max_reconsume_times", "", "what is not acknowledged is delivered again"),
    Foreign("max_request_size message_max_bytes max_message_size", "max_message_bytes",
        "the size of the largest body", "consumers take messages of any size"),
    Foreign("delivery_timeout_ms message_timeout_ms send_timeout send_msg_timeout",
        "send_timeout_ms", "in milliseconds", "only producers send"),
    Foreign("enable_idempotence", note="a send that is repeated after a lost answer may be stored"
        " twice, and both copies have the same unique_key"),
    Foreign("transactional_id transaction_timeout_ms transaction_listener", note=
        "a TransactionProducer sends messages that belong to a transaction of the program"),
    Foreign("partitioner partitioner_class message_queue_selector selector sticky_partitioning"
        "_linger_ms", note="send takes the selector, as in send(message, selector=by_hash,"
        " key='customer 7')"),
    Foreign("key_serializer value_serializer serializer value_encoder key_encoder encoding charset",
        note=_BODIES + "new_message(topic, json.dumps(value)) encodes a text in UTF-8"),
    Foreign("on_delivery delivery_callback dr_cb dr_msg_cb error_cb send_callback on_success",
        note="send returns a result or raises an error, and send_async returns a future"),
    Foreign("default_topic tag", note="a message has them: new_message(topic, body, tags='paid')"),
    # Consumers.
    Foreign("topic topics topic_list topics_list queue queues streams stream subscribe subscription"
        " subscription_expressions expression sub_expression filter_expression tags selector_type"
        " message_selector", "subscriptions", "a dict of topics and tags, as in {'Orders': '*'}",
        "a message has its topic: new_message(topic, body)"),
    Foreign("message_listener callback on_message on_message_callback handler message_handler"
        " register_message_listener consume_callback func function", "listener",
        "the function that gets the messages, which is its third argument",
        "it is asked for messages, by poll, receive, async for or a loop"),
    Foreign("auto_offset_reset offset_reset consume_from_where offset_policy initial_offset"
        " begin_offset from_beginning consume_from_position", "consume_from",
        "'earliest', 'latest' or ConsumeFrom.TIMESTAMP", "only consumers have offsets"),
    Foreign("consume_timestamp", "consume_timestamp_ms", "in milliseconds since the epoch",
        "PushConsumer and LitePullConsumer may begin at a time"),
    Foreign("enable_auto_commit auto_commit_enable autocommit enable_auto_offset_store",
        "auto_commit", "", _COMMITS),
    Foreign("auto_commit_interval auto_commit_interval_millis offset_commit_interval_ms"
        " persist_consumer_offset_interval", "auto_commit_interval_ms persist_interval_ms", "",
        _COMMITS),
    Foreign("auto_ack no_ack ack_mode acknowledge", note="a listener that returns has"
        " consumed its messages, and one that raises gets them again; PopConsumer has ack"),
    Foreign("batch_size max_poll_records prefetch_count prefetch count max_messages max_records"
        " consume_message_batch_size pull_batch_nums max_message_num",
        "consume_message_batch_max_size batch_size pull_batch_size", "", _TOGETHER),
    Foreign("max_poll_interval_ms consume_timeout visibility_timeout invisible_duration"
        " consumption_timeout invisible_time await_duration",
        "consume_timeout_ms invisible_ms", "in milliseconds",
        "poll may be called as seldom as the program likes"),
    Foreign("fetch_max_wait_ms fetch_wait_max_ms fetch_max_wait consumer_timeout_ms block"
        " poll_timeout broker_suspend_max_time_millis", "poll_timeout_ms broker_suspend_max_ms",
        "in milliseconds", _IN_A_CALL),
    Foreign("fetch_min_bytes", note="a broker answers as soon as it has a message"),
    Foreign("fetch_max_bytes max_partition_fetch_bytes fetch_message_max_bytes"
        " receive_message_max_bytes", "pull_batch_bytes pull_threshold_size_for_queue", "in bytes",
        "how many messages are taken at once is set instead: batch_size"),
    Foreign("queued_max_messages_kbytes queued_min_messages max_cache_message_count"
        " max_cached_message_count max_cache_message_size pull_threshold",
        "pull_threshold_for_queue", "for each queue",
        "it holds no more messages than receive has returned"),
    Foreign("partition_assignment_strategy allocate_message_queue_strategy assignor"
        " allocate_strategy", "strategy", "a function such as averagely or consistent_hash",
        "brokers say who gets which message"),
    Foreign("isolation_level", note="messages of a transaction are delivered when it is committed"),
    Foreign("check_crcs", note="the checksum of each message is always compared"),
    Foreign("consume_thread_min consume_thread_max consume_thread_nums consume_thread_num"
        " thread_count threads workers max_workers concurrency consumption_thread_count"
        " max_concurrency num_workers", "consume_concurrency", "", "the program decides in how many"
        " threads it works"),
    Foreign("broadcast broadcasting is_broadcast", "message_model", "'BROADCASTING' or"
        " 'CLUSTERING'", "each member of a group gets other messages"),
    Foreign("order ordered order_consumer is_orderly fifo", "orderly", "True for messages of a"
        " queue one after the other", "poll returns the messages of a queue in their order"),
    Foreign("value_deserializer key_deserializer deserializer decode_responses value_decoder",
        note=_BODIES + "message.body.decode() is a text, and json.loads(message.body) a value"),
    Foreign("on_partitions_assigned on_assign on_revoke rebalance_cb listener_on_rebalance"
        " message_queue_listener", "queues_changed", "a function that gets the queues",
        "subscribe of LitePullConsumer takes queues_changed"),
    Foreign("exchange routing_key exchange_type", note="messages are sent to a topic, and consumers"
        " filter them by tags"),
    Foreign("dead_letter_topic dead_letter_exchange dlq", note="brokers put what has failed too"
        " often into the topic %DLQ%GROUP, after max_reconsume_times"),
)  # fmt: skip

_TABLE: Final = table_of(FOREIGN_SETTINGS, plain)


def answer_for(name: str, known: Collection[str]) -> str:
    """Returns what to say of a setting of another client to a class with these settings, or "".

    A setting of ours in another spelling is one too, such as `namesrvAddr`.
    """
    if answer := spelt_otherwise(name, known):
        return answer
    foreign = _TABLE.get(plain(name))
    return foreign.answer(known) if foreign else ""
