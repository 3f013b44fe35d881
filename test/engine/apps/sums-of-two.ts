import { sumsOf } from '../support/sums.ts'

export default sumsOf('one', 'two')
