/** Two streams that meet by another key, behind processors: nobody knows for how long these hold a record back. */
import { defineApp, serdes } from 'millrace'

const numbers = { key: serdes.string, value: serdes.json<number>() }

export default defineApp({
  applicationId: 'joined-behind',
  build(topology) {
    const [left, right] = ['left', 'right'].map((topic) =>
      topology
        .stream(topic, numbers)
        .processValues<number>((context) => (value) => context.forward(value))
        .selectKey(() => 'all', { key: serdes.string }),
    )
    left
      ?.outerJoin(right as NonNullable<typeof right>, (a, b) => `${a ?? 'nobody'} and ${b ?? 'nobody'}`, {
        within: '100ms',
        grace: 0,
        ...{ left: numbers.value, right: numbers.value, key: numbers.key },
      })
      .to('pairs')
  },
})
