import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.sun.management.OperatingSystemMXBean;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ListOffsetsOptions;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.common.IsolationLevel;
import org.apache.kafka.common.Metric;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Deserializer;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.Serializer;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.EmitStrategy;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Joined;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.Repartitioned;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.processor.api.FixedKeyProcessor;
import org.apache.kafka.streams.processor.api.FixedKeyProcessorContext;
import org.apache.kafka.streams.processor.api.FixedKeyRecord;
import org.apache.kafka.streams.state.BuiltInDslStoreSuppliers;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.WindowStore;

/**
 * The workloads of `bench/support/app.ts` as a Kafka Streams application, with the settings that suit it best:
 * `Beside WORKLOAD --in T --out T --table T --store memory|rocksdb --threads N --skip N --id NAME --state DIR`. Prints one
 * JSON line for the span from the first record processed (or from record --skip on) to everything committed; with
 * `latency` it prints `ready` and runs until its input ends.
 */
public final class Beside {
  private static final ObjectMapper MAPPER = new ObjectMapper();
  private static final AtomicLong FIRST_NANOS = new AtomicLong();

  private final Map<String, String> options = new HashMap<>();
  private final String workload;
  private final Admin admin;

  private Beside(String[] words) {
    workload = words[0];
    for (int i = 1; i + 1 < words.length; i += 2) options.put(words[i].substring(2), words[i + 1]);
    admin = Admin.create(Map.of("bootstrap.servers", option("bootstrap", "127.0.0.1:9092")));
  }

  public static void main(String[] words) throws Exception {
    int status = 0;
    try {
      new Beside(words).run();
    } catch (Throwable error) {
      error.printStackTrace();
      status = 1;
    }
    System.exit(status);
  }

  private String option(String name, String otherwise) {
    return options.getOrDefault(name, otherwise);
  }

  /** Counts the records that pass; every task counts for itself, so that counting costs no contention. */
  private static final class Gate {
    private final List<AtomicLong> counts = new CopyOnWriteArrayList<>();
    private final Map<Integer, Long> next = new java.util.concurrent.ConcurrentHashMap<>();
    private final boolean keepsOffsets;

    Gate(boolean keepsOffsets) {
      this.keepsOffsets = keepsOffsets;
    }

    long passed() {
      return counts.stream().mapToLong(AtomicLong::get).sum();
    }

    <V> KStream<String, V> on(KStream<String, V> stream) {
      return stream.processValues(() -> new FixedKeyProcessor<String, V, V>() {
        private final AtomicLong count = new AtomicLong();
        private FixedKeyProcessorContext<String, V> context;

        @Override
        public void init(FixedKeyProcessorContext<String, V> given) {
          context = given;
          counts.add(count);
        }

        @Override
        public void process(FixedKeyRecord<String, V> record) {
          if (count.getPlain() == 0) FIRST_NANOS.compareAndSet(0, System.nanoTime());
          if (keepsOffsets) context.recordMetadata().ifPresent(at -> next.put(at.partition(), at.offset() + 1));
          context.forward(record);
          count.setRelease(count.getPlain() + 1);
        }
      });
    }
  }

  private static final class Json implements Serde<JsonNode> {
    @Override
    public Serializer<JsonNode> serializer() {
      return (topic, value) -> {
        try {
          return value == null ? null : MAPPER.writeValueAsBytes(value);
        } catch (IOException error) {
          throw new UncheckedIOException(error);
        }
      };
    }

    @Override
    public Deserializer<JsonNode> deserializer() {
      return (topic, bytes) -> bytes == null ? null : parse(bytes);
    }
  }

  private static JsonNode parse(byte[] bytes) {
    try {
      return MAPPER.readTree(bytes);
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }

  private final Gate head = new Gate(false);
  private final Gate shuffled = new Gate(true);

  private void build(StreamsBuilder builder) {
    Serde<String> text = Serdes.String();
    Serde<byte[]> bytes = Serdes.ByteArray();
    Json json = new Json();
    KStream<String, byte[]> input = head.on(builder.stream(option("in", "ev"), Consumed.with(text, bytes)));
    String out = option("out", "out");
    switch (workload) {
      case "map" -> input.mapValues(Beside::parse)
          .mapValues(event -> (JsonNode) ((ObjectNode) event).put("slow", event.get("ms").intValue() > 2500))
          .filter((key, event) -> event.get("ok").booleanValue())
          .to(out, Produced.with(text, json));
      // Few updates of a key meet within one commit: here the cache would only cost.
      case "count" -> input.groupByKey(Grouped.with(text, bytes))
          .count(counts(false))
          .toStream().to(out, Produced.with(text, Serdes.Long()));
      case "rekey-count", "latency" -> shuffled
          .on(input.selectKey((key, value) -> parse(value).get("page").textValue())
              .repartition(Repartitioned.with(text, bytes).withName("by-page")))
          .groupByKey(Grouped.with(text, bytes))
          .count(counts(true))
          .toStream().to(out, Produced.with(text, Serdes.Long()));
      // Without the longer retention an in-memory store drops a window with the very record that would have closed it.
      case "window" -> input.mapValues(value -> parse(value).get("ms").longValue())
          .groupByKey(Grouped.with(text, Serdes.Long()))
          .windowedBy(TimeWindows.ofSizeWithNoGrace(Duration.ofSeconds(10)))
          .emitStrategy(EmitStrategy.onWindowClose())
          .reduce(Long::sum, Materialized.<String, Long, WindowStore<Bytes, byte[]>>with(text, Serdes.Long())
              .withCachingDisabled().withRetention(Duration.ofSeconds(20)))
          .toStream()
          .map((window, sum) -> KeyValue.pair(window.key(), result(window.key(), window.window().start(), sum)))
          .to(out, Produced.with(text, bytes));
      case "join" -> {
        KTable<String, JsonNode> users = builder.table(option("table", "users"), Consumed.with(text, json),
            Materialized.<String, JsonNode, KeyValueStore<Bytes, byte[]>>with(text, json).withCachingDisabled());
        input.mapValues(Beside::parse)
            .join(users, (event, user) -> (JsonNode) ((ObjectNode) event)
                .<ObjectNode>set("tier", user.get("tier")).<ObjectNode>set("country", user.get("country")),
                Joined.with(text, json, json))
            .to(out, Produced.with(text, json));
      }
      case "rekey-join" -> {
        KTable<String, JsonNode> pages = builder.table(option("table", "pages"), Consumed.with(text, json),
            Materialized.<String, JsonNode, KeyValueStore<Bytes, byte[]>>with(text, json).withCachingDisabled());
        shuffled
            .on(input.selectKey((key, value) -> parse(value).get("page").textValue())
                .repartition(Repartitioned.with(text, bytes).withName("by-page")))
            .mapValues(Beside::parse)
            .join(pages, (event, page) -> (JsonNode) ((ObjectNode) event)
                .<ObjectNode>set("tier", page.get("tier")).<ObjectNode>set("country", page.get("country")),
                Joined.with(text, json, json))
            .to(out, Produced.with(text, json));
      }
      case "slow-io" -> input.mapValues(value -> {
        try {
          Thread.sleep(5);
        } catch (InterruptedException error) {
          Thread.currentThread().interrupt();
        }
        return value;
      }).to(out, Produced.with(text, bytes));
      default -> throw new IllegalArgumentException("there is no workload " + workload);
    }
  }

  /** With a cache each changed key is told once per commit. */
  private Materialized<String, Long, KeyValueStore<Bytes, byte[]>> counts(boolean cached) {
    Materialized<String, Long, KeyValueStore<Bytes, byte[]>> counts = Materialized.with(Serdes.String(), Serdes.Long());
    boolean folds = option("emit", cached ? "commit" : "each").equals("commit");
    return folds ? counts.withCachingEnabled() : counts.withCachingDisabled();
  }

  private static byte[] result(String user, long start, long sum) {
    return ("{\"user\":\"" + user + "\",\"start\":" + start + ",\"sum\":" + sum + "}").getBytes(StandardCharsets.UTF_8);
  }

  private Properties settings(String id, Path state) {
    boolean memory = option("store", "memory").equals("memory");
    Properties settings = new Properties();
    settings.put("application.id", id);
    settings.put("bootstrap.servers", option("bootstrap", "127.0.0.1:9092"));
    settings.put("processing.guarantee", option("guarantee", "exactly_once_v2"));
    settings.put("commit.interval.ms", 100);
    settings.put("num.stream.threads", Integer.parseInt(option("threads", "2")));
    settings.put("state.dir", state.toString());
    settings.put("topology.optimization", "all");
    settings.put("statestore.cache.max.bytes", 64L << 20);
    settings.put("dsl.store.suppliers.class", memory
        ? BuiltInDslStoreSuppliers.InMemoryDslStoreSuppliers.class
        : BuiltInDslStoreSuppliers.RocksDBDslStoreSuppliers.class);
    // Closed windows come out with every record, not once a second: the last ones would wait for more input.
    settings.put("__emit.interval.ms.kstreams.windowed.aggregation__", 0L);
    settings.put("consumer.auto.offset.reset", "earliest");
    settings.put("consumer.max.poll.records", 5000);
    settings.put("producer.linger.ms", 10);
    settings.put("producer.batch.size", 128 << 10);
    return settings;
  }

  private void run() throws Exception {
    String id = option("id", "ks-" + workload + "-" + Long.toString(System.currentTimeMillis(), 36));
    Path state = Path.of(option("state", System.getProperty("java.io.tmpdir"))).resolve(id);
    StreamsBuilder builder = new StreamsBuilder();
    build(builder);
    Properties settings = settings(id, state);
    KafkaStreams streams = new KafkaStreams(builder.build(settings), settings);
    AtomicLong failures = new AtomicLong();
    streams.setUncaughtExceptionHandler(error -> {
      error.printStackTrace();
      failures.incrementAndGet();
      return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
    });
    try {
      streams.start();
      if (workload.equals("latency")) serve(streams);
      else measure(streams, id, failures);
    } finally {
      streams.close(Duration.ofSeconds(20));
      deleteTree(state);
    }
  }

  private static void serve(KafkaStreams streams) throws Exception {
    while (streams.state() != KafkaStreams.State.RUNNING) Thread.sleep(20);
    Clocks start = Clocks.now(0, 0);
    System.out.println("ready");
    System.out.flush();
    while (System.in.read() >= 0) continue;
    System.out.printf(Locale.ROOT, "{\"cpuSeconds\":%.2f,\"rssMiB\":%d}%n", (Clocks.now(0, 0).cpu() - start.cpu()) / 1e9, peakMebibytes());
  }

  private record Clocks(long nanos, long cpu, long commits) {
    static Clocks now(long nanos, long commits) {
      var system = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
      return new Clocks(nanos == 0 ? System.nanoTime() : nanos, system.getProcessCpuTime(), commits);
    }
  }

  private interface Condition {
    boolean holds() throws Exception;
  }

  private static void until(Condition condition, int everyMs, long deadline, AtomicLong failures) throws Exception {
    while (!condition.holds()) {
      if (failures.get() > 0) throw new IllegalStateException("Kafka Streams has stopped");
      if (System.nanoTime() > deadline) throw new IllegalStateException("not done in time");
      Thread.sleep(everyMs);
    }
  }

  private void measure(KafkaStreams streams, String id, AtomicLong failures) throws Exception {
    String in = option("in", "ev");
    Map<TopicPartition, Long> ends = ends(in, IsolationLevel.READ_UNCOMMITTED);
    long records = ends.values().stream().mapToLong(Long::longValue).sum();
    long skip = Long.parseLong(option("skip", "0"));
    Map<TopicPartition, Long> wanted = new HashMap<>(ends);
    if (workload.endsWith("join")) wanted.putAll(ends(option("table", "users"), IsolationLevel.READ_UNCOMMITTED));
    long deadline = System.nanoTime() + 900_000_000_000L;
    until(() -> FIRST_NANOS.get() != 0 && head.passed() >= skip, 1, deadline, failures);
    Clocks start = Clocks.now(skip == 0 ? FIRST_NANOS.get() : 0, commits(streams));
    long brokerStart = brokerCpu();
    boolean shuffles = workload.startsWith("rekey-");
    until(() -> head.passed() >= records && (!shuffles || shuffled.passed() >= records), 5, deadline, failures);
    until(() -> {
      if (shuffles) {
        for (int p = 0; p < ends.size(); p++) wanted.put(new TopicPartition(id + "-by-page-repartition", p), shuffled.next.getOrDefault(p, 0L));
      }
      return committed(id, wanted) && ends(option("out", "out"), IsolationLevel.READ_COMMITTED)
          .equals(ends(option("out", "out"), IsolationLevel.READ_UNCOMMITTED));
    }, 5, deadline, failures);
    Clocks end = Clocks.now(0, commits(streams));
    double seconds = (end.nanos() - start.nanos()) / 1e9;
    long done = records - skip;
    System.out.printf(Locale.ROOT,
        "{\"peer\":\"kafka-streams\",\"workload\":\"%s\",\"store\":\"%s\",\"records\":%d,\"seconds\":%.3f,\"recordsPerSecond\":%d,"
            + "\"cpuSeconds\":%.2f,\"brokerCpuSeconds\":%.2f,\"rssMiB\":%d,\"commitEveryMs\":%d}%n",
        workload, option("store", "memory"), done, seconds, Math.round(done / seconds), (end.cpu() - start.cpu()) / 1e9,
        (brokerCpu() - brokerStart) / 1e9, peakMebibytes(),
        end.commits() == start.commits() ? 0 : Math.round(seconds * 1000 / (end.commits() - start.commits())));
    System.out.flush();
  }

  /** Commits of one thread, on average. */
  private long commits(KafkaStreams streams) {
    double commits = 0;
    for (Metric metric : streams.metrics().values()) {
      var name = metric.metricName();
      if (name.name().equals("commit-total") && name.group().equals("stream-thread-metrics")) commits += (Double) metric.metricValue();
    }
    return (long) commits / Integer.parseInt(option("threads", "2"));
  }

  private Map<TopicPartition, Long> ends(String topic, IsolationLevel isolation) throws Exception {
    Map<TopicPartition, OffsetSpec> asked = new HashMap<>();
    for (var partition : admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic).partitions())
      asked.put(new TopicPartition(topic, partition.partition()), OffsetSpec.latest());
    Map<TopicPartition, Long> ends = new HashMap<>();
    admin.listOffsets(asked, new ListOffsetsOptions(isolation)).all().get().forEach((tp, found) -> ends.put(tp, found.offset()));
    return ends;
  }

  private boolean committed(String group, Map<TopicPartition, Long> wanted) throws Exception {
    var offsets = admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get();
    for (var want : wanted.entrySet()) {
      var found = offsets.get(want.getKey());
      if ((found == null ? 0 : found.offset()) < want.getValue()) return false;
    }
    return true;
  }

  private long brokerCpu() {
    String pid = option("broker-pid", "");
    if (pid.isEmpty()) return 0;
    try {
      String stat = Files.readString(Path.of("/proc", pid, "stat"));
      String[] fields = stat.substring(stat.lastIndexOf(')') + 2).split(" ");
      return (Long.parseLong(fields[11]) + Long.parseLong(fields[12])) * 10_000_000L;
    } catch (IOException error) {
      return 0;
    }
  }

  private static long peakMebibytes() throws IOException {
    Path status = Path.of("/proc/self/status");
    if (!Files.exists(status)) return 0;
    for (String line : Files.readAllLines(status)) {
      if (line.startsWith("VmHWM:")) return Long.parseLong(line.replaceAll("\\D", "")) / 1024;
    }
    return 0;
  }

  private static void deleteTree(Path folder) throws IOException {
    if (!Files.exists(folder)) return;
    List<Path> paths = new ArrayList<>();
    try (var walk = Files.walk(folder)) {
      walk.sorted(Comparator.reverseOrder()).forEach(paths::add);
    }
    for (Path path : paths) Files.deleteIfExists(path);
  }
}
