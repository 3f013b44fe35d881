/** The public test kit. */
export { EmbeddedRegistry } from '../serde/registry/embedded-registry.ts'
export type {
  ApplicationOptions,
  DriverLogLine,
  DriverOptions,
  DroppedRecord,
  InputRecord,
  InputTopic,
  OutputRecord,
  OutputTopic,
  PipeOptions,
  TestedApplication,
  TopicOptions,
} from './contract.ts'
export { TopologyTestDriver } from './driver.ts'
