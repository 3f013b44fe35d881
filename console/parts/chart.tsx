import type { JSX } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import uPlot from 'uplot'
import type { Column } from '../ask/model.ts'
import { dayAndTime, zoneOf } from './format.ts'

interface ChartProps {
  readonly label: string
  readonly atMs: readonly number[]
  readonly lines: ReadonlyArray<{ readonly name: string; readonly values: Column }>
  readonly unit: (value: number) => string
  readonly theme: string
}

const height = 130

/** Lines over the last quarter of an hour. Its label says the newest values. */
export function Chart({ label, atMs, lines, unit, theme }: ChartProps): JSX.Element {
  const box = useRef<HTMLDivElement>(null)
  const plot = useRef<uPlot | undefined>(undefined)
  const names = lines.map(({ name }) => name).join('|')
  const data = [atMs.map((at) => at / 1000), ...lines.map(({ values }) => [...values])] as uPlot.AlignedData
  useEffect(() => {
    const parent = box.current
    if (parent === null) return
    const made = new uPlot(optionsOf(names.split('|'), unit, parent.clientWidth), data, parent)
    plot.current = made
    const resize = new ResizeObserver(() => made.setSize({ width: parent.clientWidth, height }))
    resize.observe(parent)
    return () => {
      resize.disconnect()
      made.destroy()
    }
  }, [names, theme])
  useEffect(() => plot.current?.setData(data))
  const newest = lines.map(({ name, values }) => `${name} ${lastOf(values, unit)}`).join(', ')
  return (
    <figure class="chart">
      <figcaption>
        {label}: <b>{newest}</b>
      </figcaption>
      <div ref={box} role="img" aria-label={`${label} over the last quarter of an hour; now ${newest}`} />
    </figure>
  )
}

function lastOf(values: Column, unit: (value: number) => string): string {
  const last = values.at(-1)
  return last === null || last === undefined ? 'not known yet' : unit(last)
}

function optionsOf(names: readonly string[], unit: (value: number) => string, width: number): uPlot.Options {
  const style = getComputedStyle(document.documentElement)
  const colour = (name: string): string => style.getPropertyValue(name).trim()
  const axis = { stroke: colour('--dim'), grid: { stroke: colour('--line'), width: 1 }, ticks: { show: false } }
  return {
    width,
    height,
    legend: { show: false },
    cursor: { show: false },
    padding: [8, 8, 0, 0],
    ...(zoneOf() === 'utc' && { tzDate: (at: number) => uPlot.tzDate(new Date(at * 1000), 'Etc/UTC') }),
    scales: { y: { range: (_, min, max) => [Math.min(0, min ?? 0), Math.max(max ?? 0, 1)] } },
    // The widest label is `17:03:15 Z`.
    axes: [
      { ...axis, space: 76, gap: 8, values: timesOf },
      { ...axis, size: 64, values: (_, splits) => splits.map(unit) },
    ],
    series: [
      {},
      ...names.map((name, i) => ({
        label: name,
        stroke: colour(i === 0 ? '--first' : '--second'),
        width: 1.5,
        points: { show: false },
        spanGaps: false,
      })),
    ],
  }
}

/** Times as they are everywhere else. The day stands beneath the first, and wherever it changes. */
function timesOf(_: uPlot, splits: number[], _axis: number, _space: number, stepSeconds: number): string[] {
  let before = ''
  return splits.map((at) => {
    const [day, time] = dayAndTime(at * 1000, stepSeconds < 60)
    const isNew = day !== before
    before = day
    return isNew ? `${time}\n${day}` : time
  })
}
