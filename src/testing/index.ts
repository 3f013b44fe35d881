/** The public test kit. */
export { EmbeddedRegistry } from '../serde/registry/embedded-registry.ts'
export type {
  DriverLogLine,
  DriverOptions,
  DroppedRecord,
  InputRecord,
  InputTopic,
  OutputRecord,
  OutputTopic,
  PipeOptions,
  TopicOptions,
} from './contract.ts'
export { TopologyTestDriver } from './driver.ts'
