/** Words that findings use, each with what it means: the guide lists all of them, the text form those that it used. */
export interface Term {
  /** As the guide's table has it. */
  readonly word: string
  readonly meaning: string
  /** How it is met in a sentence. Left out where the guide alone needs it. */
  readonly met?: RegExp
}

export const terms: readonly Term[] = [
  {
    word: 'engine',
    meaning:
      'the part of a process that reads topics, runs the application and commits; a thread of the same name leads it',
  },
  {
    word: 'lane',
    met: /\blanes?\b/,
    meaning:
      'a thread of this process that runs the functions of the application; the first is `lane-0`, the second `lane-1`',
  },
  {
    word: 'step (or node)',
    met: /(?<!this one )\bsteps?\b/,
    meaning: 'one processing stage, such as a filter or a join, named as in `/topology`. Not a node of a cluster',
  },
  {
    word: 'bags/3',
    meaning: 'partition 3 of the topic `bags`; its records are read one after the other, each by its *offset*',
  },
  {
    word: 'commit',
    met: /\bcommit(s|ted)?\b/i,
    meaning:
      'publishes all results so far together, in one Kafka transaction; consumers with `isolation.level=read_committed` see none of them until then. Its settings are named `commit-barrier.…`',
  },
  {
    word: 'restart in place',
    met: /restart(s|ed|ing)? (in place|itself)/,
    meaning:
      'the engine gives up what is not committed and reads those records again; the process goes on, and no record is lost',
  },
  {
    word: 'key hash',
    met: /\bhash\b/,
    meaning: '`murmur2` of the bytes of the key, in hexadecimal, as Kafka’s partitioner has it',
  },
  { word: 'event time', met: /event time/i, meaning: 'the time in the records’ own timestamps' },
  {
    word: 'watermark',
    met: /\bwatermark\b(?!\.)/i,
    meaning:
      'the event time up to which all records are taken to have come: windows up to it are closed, timers have fired. Not Kafka’s high watermark',
  },
  {
    word: 'late',
    met: /\blate\b/,
    meaning: 'a record that comes after its window was closed; it is dropped and counted, or becomes a dead letter',
  },
  {
    word: 'window, timer',
    met: /\bwindows\b/,
    meaning: 'a window gives its result, and a timer runs, when event time has passed its end',
  },
  {
    word: 'idle',
    met: /\bidle(ness)?\b/,
    meaning:
      'a partition without records for the idleness time-out (`watermark.idleness-timeout`, or `idleness` of its source); from then on the engine does not wait for it',
  },
  {
    word: 'alignment group',
    met: /alignment group/,
    meaning: 'sources that are kept together in event time: none is read further ahead of the slowest than `maxDrift`',
  },
  {
    word: 'source',
    met: /\bsources?\b/,
    meaning: 'a topic that the application reads, as it names it in its program',
  },
  {
    word: 'timestamp extractor',
    met: /timestamp extractor/,
    meaning: 'a function of the application that takes the time out of a record',
  },
  {
    word: 'buffer',
    met: /\bbuffers?\b/,
    meaning: 'records of a partition that were read ahead and wait to be processed',
  },
  {
    word: 'store, changelog',
    met: /\bstores?\b/,
    meaning:
      'rows that the application keeps, in memory or, with `lmdb`, in files; its changelog is the topic in Kafka from which they are rebuilt (*restored*)',
  },
  {
    word: 'transaction',
    meaning:
      'what a producer writes and decides on at once; the *transaction coordinator* is the broker that keeps the decision',
  },
  {
    word: 'transactional id',
    met: /transactional id/,
    meaning: 'the name under which a producer writes in transactions; its program configures it as `transactional.id`',
  },
  {
    word: 'dead letters',
    met: /dead[- ]letters?/,
    meaning:
      'a topic for records that failed or came late, with the reason in their headers; `millrace dlq` lists them and puts them back',
  },
  {
    word: 'promise',
    met: /\bpromise\b/,
    meaning:
      'what an asynchronous JavaScript function returns in place of its result; *pending* until the result arrives',
  },
  { word: 'lag', meaning: 'records that have come and are not committed yet' },
  {
    word: 'group, member',
    met: /\b(consumer group|members?)\b/,
    meaning: 'the Kafka consumer group of this application, and one process in it',
  },
  {
    word: 'pod',
    // Not as a part of the name of a host.
    met: /(?<![\w-])(?<!kubectl get )pods?(?![\w-])/i,
    meaning: 'one of the processes of an application with `ha.mode: hot-standby`, of which one is *active* at a time',
  },
  {
    word: 'standby',
    met: /\bstandby\b/,
    meaning:
      'a process that keeps a copy of the same state and takes over when the active one stops; until then it processes nothing',
  },
  {
    word: 'ready',
    met: /\b(not|be|until it is|a) ready\b/,
    meaning: 'of a standby: it has all of the state, so that it can take over at once',
  },
  {
    word: 'embedded broker',
    met: /\bembedded broker\b/,
    meaning:
      'a broker within this process, in place of Kafka, which no Kafka tool can ask; `broker.bootstrap-servers` is `embedded:` then, which keeps topics in memory, or `embedded:<folder>`, which keeps them in files',
  },
  {
    word: 'fetch, dispatch',
    meaning: 'in the flow: the engine reads records from the broker, and gives them to the lanes of their keys',
  },
  {
    word: 'heartbeat',
    met: /\bheartbeats?\b|\bcoordinator topic\b/,
    meaning:
      'a word with which each pod says again and again that it lives, through a topic in Kafka of its own, the *coordinator topic*',
  },
  {
    word: 'supervisor',
    met: /\bsupervisor\b/,
    meaning: 'what starts the process, and starts it again when it ends, such as systemd or Kubernetes',
  },
  {
    word: 'identity',
    met: /\bidentity\b/,
    meaning:
      'the name under which the broker knows a process, made of the application’s id and `engine.instance-id`; one process may have it at a time',
  },
  {
    word: 'fenced',
    met: /\bfenced\b/i,
    meaning: 'refused by the broker, because another process has come under the same identity',
  },
]
