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
  /** Left out where the columns do not all have room beside each other. */
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
  /** The column that is sorted first, descending when it starts with `-`. Default: the order of the rows. */
  readonly sortedBy?: string
}

/** A table with a head that stays in sight, columns that sort, and secondary columns that give way. */
export function Table<Row>({ caption, columns, rows, rowKey, empty, sortedBy }: TableProps<Row>): JSX.Element {
  const order = useSignal(sortedBy)
  const host = useRef<HTMLElement>(null)
  const isCompact = useCompact(host)
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: who has no mouse must be able to scroll a wide table
    <section ref={host} class={classes.scroll} tabIndex={0} aria-label={caption}>
      <table class={classes.table} data-compact={isCompact.value}>
        <caption class="visually-hidden">{caption}</caption>
        <thead>
          <tr>
            {columns.map((column) => (
              <HeadCell
                key={column.id}
                column={column}
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
                <td key={column.id} class={cellClass(column)} data-header={phoneHeader(column)}>
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

/** Whether the table is wider than its place. It is whole again where the width that it needed is there. */
function useCompact(host: RefObject<HTMLElement | null>): Signal<boolean> {
  const isCompact = useSignal(false)
  const neededWidth = useRef(0)
  const measure = (): void => {
    if (host.current === null) return
    const { clientWidth, scrollWidth } = host.current
    if (isCompact.peek()) isCompact.value = clientWidth < neededWidth.current
    else if (scrollWidth > clientWidth) {
      neededWidth.current = scrollWidth
      isCompact.value = true
    }
  }
  useEffect(measure)
  useEffect(() => {
    const resizing = new ResizeObserver(measure)
    resizing.observe(host.current!)
    return () => resizing.disconnect()
  }, [])
  return isCompact
}

interface HeadCellProps<Row> {
  readonly column: Column<Row>
  readonly order: string | undefined
  readonly onSort: (order: string) => void
}

function HeadCell<Row>({ column, order, onSort }: HeadCellProps<Row>): JSX.Element {
  const isActive = order === column.id || order === `-${column.id}`
  const isDescending = order === `-${column.id}`
  const direction = isDescending ? 'descending' : 'ascending'
  const next = isActive && isDescending ? column.id : `-${column.id}`
  return (
    <th
      scope="col"
      class={`${column.align === 'end' ? classes.end : ''} ${placeClass(column)}`}
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
    placeClass(column),
  ]
  return names.join(' ')
}

function placeClass<Row>({ isHeaderHidden, isSecondary, sharesLine }: Column<Row>): string {
  const names = [
    isHeaderHidden ? classes.pinned : '',
    isSecondary ? classes.secondary : '',
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
