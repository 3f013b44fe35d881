/** Made by `millrace types` from Avro schemas; make it anew rather than change it. */

export interface Payment {
  readonly id: string
  readonly amount: string
  readonly at: number
  readonly note: null | string
}

export interface Balance {
  readonly payments: number
  readonly cents: number
  readonly last: null | number
}
