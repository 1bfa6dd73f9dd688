import type { Signal } from '@preact/signals'
import { useSignal } from '@preact/signals'
import type { ComponentChildren, JSX, RefObject } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { Icon } from '../theme/icon.tsx'
import classes from './table.module.css'

/** A column of a table. */
export interface Column<Row> {
  readonly id: string
  readonly header: string
  readonly cell: (row: Row) => ComponentChildren
  /** Makes the column sortable: the value to compare. */
  readonly sortValue?: (row: Row) => string | number
  /** Numbers stand at the end. Default: `start`. */
  readonly align?: 'start' | 'end'
  /** Identifiers are set in the font of code. */
  readonly isCode?: boolean
  /** Long text wraps anywhere instead of making the table wide. */
  readonly wraps?: boolean
  /** Hides the header from sight, for columns of buttons. These stay in sight when the table is wider than the page. */
  readonly isHeaderHidden?: boolean
  /** Left out where the columns do not all have room beside each other: the last such column first. */
  readonly isSecondary?: boolean
  /** On a phone, it stands beside the column before it, and without its header: for what explains itself. */
  readonly sharesLine?: boolean
}

export interface TableProps<Row> {
  /** What the table shows, for screen readers. */
  readonly caption: string
  readonly columns: readonly Column<Row>[]
  readonly rows: readonly Row[]
  readonly rowKey: (row: Row) => string | number
  /** Stands where there are no rows. */
  readonly empty?: ComponentChildren
  /** For screen readers only: nothing in it takes the focus, which nobody would see. */
  readonly isOutOfSight?: boolean
  /** The column that is sorted first, descending when it starts with `-`. Default: the order of the rows. */
  readonly sortedBy?: string
}

/** A table with a head that stays in sight, columns that sort, and secondary columns that give way. */
export function Table<Row>(props: TableProps<Row>): JSX.Element {
  const { caption, columns, rows, rowKey, empty, sortedBy, isOutOfSight = false } = props
  const order = useSignal(sortedBy)
  const host = useRef<HTMLElement>(null)
  const secondary = columns.filter(({ isSecondary }) => isSecondary)
  const level = useFit(host, secondary.length)
  const leftOut = new Set(secondary.slice(Math.max(0, secondary.length - level.value)))
  const placeOf = (column: Column<Row>): string => placeClass(column, leftOut.has(column))
  return (
    <section
      ref={host}
      class={isOutOfSight ? undefined : classes.scroll}
      // Who has no mouse must be able to scroll a wide table.
      tabIndex={isOutOfSight ? undefined : 0}
      aria-label={caption}
    >
      <table class={classes.table} data-compact={level.value > secondary.length}>
        <caption class="visually-hidden">{caption}</caption>
        <thead>
          <tr>
            {columns.map((column) => (
              <HeadCell
                key={column.id}
                column={column}
                place={placeOf(column)}
                order={order.value}
                onSort={(next) => {
                  order.value = next
                }}
              />
            ))}
          </tr>
        </thead>
        <tbody>
          {sorted(rows, columns, order.value).map((row) => (
            <tr key={rowKey(row)}>
              {columns.map((column) => (
                <td key={column.id} class={`${cellClass(column)} ${placeOf(column)}`} data-header={phoneHeader(column)}>
                  {column.cell(row)}
                </td>
              ))}
            </tr>
          ))}
          {rows.length === 0 ? (
            <tr>
              <td colSpan={columns.length} class={classes.empty}>
                {empty ?? 'Nothing here yet.'}
              </td>
            </tr>
          ) : null}
        </tbody>
      </table>
    </section>
  )
}

/**
 * How many secondary columns give way because the table is wider than its place. One more than there are: texts wrap
 * as well. A column is back where the width that it needed is there.
 */
function useFit(host: RefObject<HTMLElement | null>, secondary: number): Signal<number> {
  const level = useSignal(0)
  const neededWidths = useRef<number[]>([])
  const measure = (): void => {
    if (host.current === null) return
    const { clientWidth, scrollWidth } = host.current
    const now = level.peek()
    if (scrollWidth > clientWidth && now <= secondary) {
      neededWidths.current[now] = scrollWidth
      level.value = now + 1
    } else if (now > 0 && clientWidth >= neededWidths.current[now - 1]!) level.value = now - 1
  }
  useEffect(measure)
  useEffect(() => {
    const resizing = new ResizeObserver(measure)
    resizing.observe(host.current!)
    return () => resizing.disconnect()
  }, [])
  return level
}

interface HeadCellProps<Row> {
  readonly column: Column<Row>
  /** Its class for its place in the table. */
  readonly place: string
  readonly order: string | undefined
  readonly onSort: (order: string) => void
}

function HeadCell<Row>({ column, place, order, onSort }: HeadCellProps<Row>): JSX.Element {
  const isActive = order === column.id || order === `-${column.id}`
  const isDescending = order === `-${column.id}`
  const direction = isDescending ? 'descending' : 'ascending'
  const next = isActive && isDescending ? column.id : `-${column.id}`
  return (
    <th
      scope="col"
      class={`${column.align === 'end' ? classes.end : ''} ${place}`}
      aria-sort={isActive ? direction : undefined}
    >
      {column.sortValue === undefined ? (
        <span class={column.isHeaderHidden ? 'visually-hidden' : undefined}>{column.header}</span>
      ) : (
        <button type="button" class={classes.sort} data-active={isActive} onClick={() => onSort(next)}>
          {column.header}
          <Icon name={isDescending || !isActive ? 'down' : 'up'} />
        </button>
      )}
    </th>
  )
}

function cellClass<Row>(column: Column<Row>): string {
  const names = [
    column.align === 'end' ? classes.end : '',
    column.isCode ? classes.mono : '',
    column.wraps ? classes.wrap : classes.nowrap,
  ]
  return names.join(' ')
}

function placeClass<Row>({ isHeaderHidden, isSecondary, sharesLine }: Column<Row>, isLeftOut: boolean): string {
  const names = [
    isHeaderHidden ? classes.pinned : '',
    isSecondary ? classes.secondary : '',
    isLeftOut ? classes.leftOut : '',
    sharesLine ? classes.beside : '',
  ]
  return names.join(' ')
}

/** What stands before the cell on a phone, where each row is a list. */
function phoneHeader<Row>({ header, isHeaderHidden, sharesLine }: Column<Row>): string {
  return isHeaderHidden || sharesLine ? '' : header
}

function sorted<Row>(rows: readonly Row[], columns: readonly Column<Row>[], order: string | undefined): readonly Row[] {
  const id = order?.replace(/^-/, '')
  const value = columns.find((column) => column.id === id)?.sortValue
  if (value === undefined) return rows
  const sign = order?.startsWith('-') ? -1 : 1
  return rows.toSorted((one, other) => sign * compared(value(one), value(other)))
}

function compared(one: string | number, other: string | number): number {
  if (typeof one === 'number' && typeof other === 'number') return one - other
  return String(one).localeCompare(String(other))
}
