import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.io.File;
import java.util.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.*;
import org.apache.kafka.common.serialization.*;

/**
 * The exactly-once verifier: Kafka's own clients, reading nothing but Kafka. Run from source, with the jars on the class
 * path: {@code java -cp 'libs/*' Verifier.java create|produce|verify --bootstrap host:port …}.
 *
 * <p>Per key the input counts up from 0 without a gap, so each output's history can be recomputed from the input alone:
 * the echo must equal the input record for record; sums, lists and counts must be later and later states of their key
 * (a state twice is a double, a state that never was is a loss or a swap) and must end in the last one.
 */
public class Verifier {
  static final long WINDOW_MS = 10_000;
  static final String[] OUTPUTS = {"echo", "sum", "list", "window", "count"};

  final Map<String, String> options = new HashMap<>();
  final List<String> errors = new ArrayList<>();
  final Map<String, Integer> kinds = new HashMap<>();
  long errorCount;

  public static void main(String[] args) throws Exception {
    Verifier verifier = new Verifier();
    for (int i = 1; i + 1 < args.length; i += 2) verifier.options.put(args[i].substring(2), args[i + 1]);
    switch (args[0]) {
      case "create" -> verifier.create();
      case "produce" -> verifier.produce();
      case "verify" -> verifier.verify();
      default -> throw new IllegalArgumentException(args[0]);
    }
  }

  String option(String name, String otherwise) {
    return options.getOrDefault(name, otherwise);
  }

  int number(String name, int otherwise) {
    return Integer.parseInt(option(name, String.valueOf(otherwise)));
  }

  String topic(String name) {
    return option("prefix", "verifier") + "-" + name;
  }

  Map<String, Object> client() {
    Map<String, Object> config = new HashMap<>();
    config.put("bootstrap.servers", option("bootstrap", "127.0.0.1:9092"));
    return config;
  }

  void create() throws Exception {
    int partitions = number("partitions", 4);
    List<NewTopic> topics = new ArrayList<>();
    topics.add(new NewTopic(topic("in"), partitions, (short) -1));
    for (String output : OUTPUTS) {
      topics.add(
          new NewTopic(topic(output), partitions, (short) -1)
              .configs(Map.of("message.timestamp.type", "LogAppendTime")));
    }
    try (Admin admin = Admin.create(client())) {
      admin.createTopics(topics).all().get();
    }
  }

  void produce() throws Exception {
    int records = number("records", 10_000);
    int keys = number("keys", 200);
    double rate = Double.parseDouble(option("rate", "0"));
    Random random = new Random(number("seed", 1));
    long from = number("from", 0);
    long base = Long.parseLong(option("base", String.valueOf(System.currentTimeMillis())));
    // The file whose appearance ends the run before all of `records` are written.
    File until = options.containsKey("until") ? new File(option("until", "")) : null;
    Map<String, Object> config = client();
    config.put("acks", "all");
    config.put("enable.idempotence", "true");
    config.put("delivery.timeout.ms", "240000");
    config.put("linger.ms", "2");
    int[] next = new int[keys];
    long started = System.nanoTime();
    Exception[] failure = new Exception[1];
    try (var producer = new KafkaProducer<>(config, new StringSerializer(), new StringSerializer())) {
      for (int i = 0; i < records; i++) {
        if (until != null && i % 100 == 0 && until.exists()) {
          records = i;
          break;
        }
        int key = random.nextInt(keys);
        String value = next[key]++ + "|" + (1 + random.nextInt(9)) + "|g" + random.nextInt(20);
        // `from` continues a run with the same seed: what was sent then is only counted now.
        if (i >= from) {
          producer.send(
              new ProducerRecord<>(topic("in"), null, base + i * 5L, "k" + key, value),
              (metadata, error) -> {
                if (error != null) failure[0] = error;
              });
          if (rate > 0) {
            long aheadMs = (long) ((i - from) / rate * 1000) - (System.nanoTime() - started) / 1_000_000;
            if (aheadMs > 1) Thread.sleep(aheadMs);
          }
        }
      }
    }
    if (failure[0] != null) throw failure[0];
    System.out.println("{\"produced\":" + (records - from) + "}");
  }

  /** State of one key as its outputs show it. */
  static class Key {
    final List<Long> sums = new ArrayList<>();
    final StringBuilder list = new StringBuilder();
    int records;
    int seenSum;
    int seenList;
  }

  static class Counter {
    int total;
    int seen;
  }

  void error(String text) {
    errorCount++;
    // A few of each kind: one fault may bring many errors of its kind about.
    if (kinds.merge(text.split(" ")[0], 1, Integer::sum) <= 6) errors.add(text);
  }

  record Line(String key, String value) {}

  void verify() throws Exception {
    long deadline = System.currentTimeMillis() + number("timeout-ms", 60_000);
    Map<Integer, List<Line>> input = new TreeMap<>();
    Map<String, Key> keys = new HashMap<>();
    Map<String, Counter> groups = new HashMap<>();
    Map<String, Counter> windows = new HashMap<>();
    long inputs = 0;
    try (Reader reader = new Reader(topic("in"))) {
      for (var record : reader.rest()) {
        inputs++;
        input.computeIfAbsent(record.partition(), p -> new ArrayList<>()).add(new Line(record.key(), record.value()));
        String[] parts = record.value().split("\\|");
        Key key = keys.computeIfAbsent(record.key(), k -> new Key());
        if (Integer.parseInt(parts[0]) != key.records) error("the input itself is not in order at " + record);
        key.records++;
        long before = key.sums.isEmpty() ? 0 : key.sums.get(key.sums.size() - 1);
        key.sums.add(before + Long.parseLong(parts[1]));
        if (key.list.length() > 0) key.list.append(',');
        key.list.append(parts[0]);
        groups.computeIfAbsent(parts[2], g -> new Counter()).total++;
        long start = record.timestamp() - record.timestamp() % WINDOW_MS;
        windows.computeIfAbsent(record.key() + "@" + start, w -> new Counter()).total++;
      }
    }
    Map<Integer, Integer> echoed = new HashMap<>();
    Map<Integer, Long> lastAppend = new HashMap<>();
    // The longest stand-still of a partition, and where it was.
    long maxGapMs = 0;
    long gapFromMs = 0;
    int gapPartition = -1;
    long outputs = 0;
    Map<String, Reader> readers = new LinkedHashMap<>();
    for (String output : OUTPUTS) readers.put(output, new Reader(topic(output)));
    boolean complete = false;
    long quietSince = 0;
    while (true) {
      int fresh = 0;
      for (var entry : readers.entrySet()) {
        for (var record : entry.getValue().poll()) {
          fresh++;
          outputs++;
          switch (entry.getKey()) {
            case "echo" -> {
              int at = echoed.merge(record.partition(), 1, Integer::sum) - 1;
              List<Line> lines = input.getOrDefault(record.partition(), List.of());
              Line expected = at < lines.size() ? lines.get(at) : null;
              if (!new Line(record.key(), record.value()).equals(expected)) {
                error("echo " + place(record) + " is " + record.key() + "=" + record.value() + ", expected " + expected);
              }
              Long before = lastAppend.put(record.partition(), record.timestamp());
              if (before != null && record.timestamp() - before > maxGapMs) {
                maxGapMs = record.timestamp() - before;
                gapFromMs = before;
                gapPartition = record.partition();
              }
            }
            case "sum" -> checkSum(keys.get(record.key()), record);
            case "list" -> checkList(keys.get(record.key()), record);
            case "window" -> checkCount("window", windows.get(record.key()), record);
            default -> checkCount("count", groups.get(record.key()), record);
          }
        }
      }
      complete = isComplete(input, echoed, keys, groups, windows);
      // After the last expected output, a little longer: what is written twice comes late.
      if (fresh > 0 || !complete) quietSince = System.currentTimeMillis();
      if (complete && System.currentTimeMillis() - quietSince > number("quiet-ms", 1500)) break;
      if (System.currentTimeMillis() > deadline) break;
    }
    if (!complete) reportMissing(input, echoed, keys, groups, windows);
    for (Reader reader : readers.values()) {
      if (!reader.isSettled()) error(reader.topic + " ends in a transaction that is not decided");
      reader.close();
    }
    if (options.containsKey("application")) checkChangelog(keys);
    System.out.println(
        "{\"ok\":" + (errorCount == 0) + ",\"inputs\":" + inputs + ",\"outputs\":" + outputs + ",\"maxGapMs\":" + maxGapMs
            + ",\"gapFromMs\":" + gapFromMs + ",\"gapPartition\":" + gapPartition
            + ",\"errorCount\":" + errorCount + ",\"errors\":[" + String.join(",", errors.stream().map(Verifier::quote).toList()) + "]}");
    System.exit(errorCount == 0 ? 0 : 1);
  }

  static String quote(String text) {
    return "\"" + text.replace("\\", "\\\\").replace("\"", "'") + "\"";
  }

  static String place(ConsumerRecord<String, String> record) {
    return record.topic() + ":" + record.partition() + ":" + record.offset();
  }

  void checkSum(Key key, ConsumerRecord<String, String> record) {
    int at = key == null ? -1 : Collections.binarySearch(key.sums, Long.parseLong(record.value()));
    if (at < 0) error("sum " + place(record) + " of " + record.key() + " is " + record.value() + ", which it never was");
    else if (at < key.seenSum) error("sum " + place(record) + " of " + record.key() + " goes back or repeats: " + record.value());
    else key.seenSum = at + 1;
  }

  void checkList(Key key, ConsumerRecord<String, String> record) {
    String value = record.value();
    boolean prefix =
        key != null
            && value.length() <= key.list.length()
            && key.list.substring(0, value.length()).equals(value)
            && (value.length() == key.list.length() || key.list.charAt(value.length()) == ',');
    int items = value.isEmpty() ? 0 : value.split(",").length;
    if (!prefix) error("list " + place(record) + " of " + record.key() + " is no prefix: …" + value.substring(Math.max(0, value.length() - 60)));
    else if (items <= key.seenList) error("list " + place(record) + " of " + record.key() + " goes back or repeats: " + items + " items");
    else key.seenList = items;
  }

  void checkCount(String kind, Counter counter, ConsumerRecord<String, String> record) {
    int count = Integer.parseInt(record.value());
    if (counter == null || count > counter.total) error(kind + " " + place(record) + " of " + record.key() + " is too high: " + count);
    else if (count <= counter.seen) error(kind + " " + place(record) + " of " + record.key() + " goes back or repeats: " + count);
    else counter.seen = count;
  }

  boolean isComplete(Map<Integer, List<Line>> input, Map<Integer, Integer> echoed, Map<String, Key> keys,
      Map<String, Counter> groups, Map<String, Counter> windows) {
    return input.entrySet().stream().allMatch(e -> echoed.getOrDefault(e.getKey(), 0) >= e.getValue().size())
        && keys.values().stream().allMatch(key -> key.seenSum == key.records && key.seenList == key.records)
        && groups.values().stream().allMatch(counter -> counter.seen == counter.total)
        && windows.values().stream().allMatch(counter -> counter.seen == counter.total);
  }

  void reportMissing(Map<Integer, List<Line>> input, Map<Integer, Integer> echoed, Map<String, Key> keys,
      Map<String, Counter> groups, Map<String, Counter> windows) {
    input.forEach((partition, lines) -> {
      int seen = echoed.getOrDefault(partition, 0);
      if (seen < lines.size()) error("echo of partition " + partition + " ends at " + seen + " of " + lines.size());
    });
    keys.forEach((name, key) -> {
      if (key.seenSum != key.records) error("sum of " + name + " ends at " + key.seenSum + " of " + key.records);
      if (key.seenList != key.records) error("list of " + name + " ends at " + key.seenList + " of " + key.records);
    });
    groups.forEach((name, counter) -> {
      if (counter.seen != counter.total) error("count of " + name + " ends at " + counter.seen + " of " + counter.total);
    });
    windows.forEach((name, counter) -> {
      if (counter.seen != counter.total) error("window " + name + " ends at " + counter.seen + " of " + counter.total);
    });
  }

  /** The changelog, folded, is the state: its last value of every key must be the whole list. */
  void checkChangelog(Map<String, Key> keys) {
    Map<String, String> folded = new HashMap<>();
    try (Reader reader = new Reader(option("application", "") + "-lists-changelog")) {
      for (var record : reader.rest()) folded.put(record.key(), record.value());
      if (!reader.isSettled()) error(reader.topic + " ends in a transaction that is not decided");
    }
    keys.forEach((name, key) -> {
      if (!key.list.toString().equals(folded.get(name))) error("the changelog's list of " + name + " is not the last one");
    });
    if (folded.size() != keys.size()) error("the changelog holds " + folded.size() + " keys, expected " + keys.size());
  }

  /** Reads committed records of one topic, from the beginning. */
  class Reader implements AutoCloseable {
    final String topic;
    final KafkaConsumer<String, String> consumer;
    final List<TopicPartition> partitions;

    Reader(String topic) {
      this.topic = topic;
      Map<String, Object> config = client();
      config.put("isolation.level", "read_committed");
      config.put("enable.auto.commit", "false");
      config.put("fetch.max.wait.ms", "50");
      config.put("max.poll.records", "5000");
      consumer = new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer());
      partitions = consumer.partitionsFor(topic).stream().map(info -> new TopicPartition(topic, info.partition())).toList();
      consumer.assign(partitions);
      consumer.seekToBeginning(partitions);
    }

    List<ConsumerRecord<String, String>> poll() {
      List<ConsumerRecord<String, String>> records = new ArrayList<>();
      consumer.poll(Duration.ofMillis(50)).forEach(records::add);
      return records;
    }

    /** Everything up to the end as it stands now. */
    List<ConsumerRecord<String, String>> rest() {
      List<ConsumerRecord<String, String>> records = new ArrayList<>();
      Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
      long deadline = System.currentTimeMillis() + 240_000;
      while (partitions.stream().anyMatch(tp -> consumer.position(tp) < ends.get(tp))) {
        if (System.currentTimeMillis() > deadline) throw new IllegalStateException("could not be read to its end: " + ends);
        records.addAll(poll());
      }
      return records;
    }

    /** Whether no transaction is open: the stable end is the end. Waits a while for markers under way. */
    boolean isSettled() {
      Map<String, Object> config = client();
      config.put("isolation.level", "read_uncommitted");
      try (var other = new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer())) {
        for (int tries = 0; tries < 1200; tries++) {
          if (other.endOffsets(partitions).equals(consumer.endOffsets(partitions))) return true;
          Thread.sleep(50);
        }
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
      }
      return false;
    }

    @Override
    public void close() {
      consumer.close();
    }
  }
}
