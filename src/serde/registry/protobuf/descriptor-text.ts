/** Some producers register the descriptor itself, as base64, in place of the text of a file. */
import { optionalPackage } from '../optional-package.ts'
import { protoText } from './proto-text.ts'

export function isProtoText(text: string): boolean {
  return /[{;]/.test(text)
}

/** The text of the file whose descriptor this is. Throws where it is none. */
export function descriptorText(base64: string, what: string): string {
  const { fromBinary } = optionalPackage<typeof import('@bufbuild/protobuf')>('@bufbuild/protobuf', what)
  const { FileDescriptorProtoSchema } = optionalPackage<typeof import('@bufbuild/protobuf/wkt')>(
    '@bufbuild/protobuf/wkt',
    what,
  )
  return protoText(fromBinary(FileDescriptorProtoSchema, Buffer.from(base64, 'base64')))
}
