/** What a node does: one variant a kind of operator. */
export type OperatorSpec = { readonly op: string }
