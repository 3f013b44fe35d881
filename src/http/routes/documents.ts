/**
 * Documents of what never changes: the merged configuration, a compiled topology, the description of the interface.
 * Each is made when first asked for, and lent to every answer from then on: many who ask at once cost neither time nor
 * memory of their own.
 */
export function madeOnce<T extends object, V extends string>(
  render: (subject: T, variant: V) => string,
): (subject: T, variant: V) => Buffer {
  const documents = new WeakMap<T, Map<V, Buffer>>()
  return (subject, variant) => {
    let variants = documents.get(subject)
    if (variants === undefined) {
      variants = new Map()
      documents.set(subject, variants)
    }
    let document = variants.get(variant)
    if (document === undefined) {
      document = Buffer.from(render(subject, variant))
      variants.set(variant, document)
    }
    return document
  }
}
