/**
 * A topic that serves as changelog brings a row back to the task of its partition. In process the hash of a key finds its
 * task, so the two have to be one. Producers that share keys out by another rule put them elsewhere.
 */
import { EngineError } from '../../base/errors.ts'

export function misplacedKey(topic: string, partition: number, offset: number, task: number): EngineError {
  const message =
    `\`topology.optimization: all\` takes the topic ${topic} as the changelog of a table, and the key of ` +
    `${topic}/${partition} at offset ${offset} belongs into partition ${task} by the hash of Kafka's default partitioner: ` +
    'the next start would look for the row there, and miss it. Set `topology.optimization: none`, which gives the table a ' +
    'changelog of its own, or write the topic anew with that partitioner'
  return new EngineError('CONFIG_INVALID', message, { topic, partition, offset })
}
