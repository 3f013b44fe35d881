/** The public test kit. */
export {
  type DriverOptions,
  type DroppedRecord,
  type InputTopic,
  type OutputRecord,
  type OutputTopic,
  type PipeOptions,
  TopologyTestDriver,
} from './driver.ts'
