import { describe, expect, it } from 'vitest'
import { InternedValues } from './entity-table.ts'

interface Terms {
  readonly limit: number
}

function createValues(): InternedValues<Terms> {
  return new InternedValues<Terms>({
    textOf: ({ limit }) => String(limit),
    keep: (value) => Object.freeze({ ...value }),
  })
}

describe('interned values', () => {
  it('give equal values as one object, also in different places', () => {
    const values = createValues()
    const given = { limit: 1 }
    const here = values.take('here', given)
    const again = values.take('here', { limit: 1 })
    const there = values.take('there', { limit: 1 })
    expect(again.number).toBe(here.number)
    expect(there.number).not.toBe(here.number)
    expect(there.value).toBe(here.value)
    expect(here.value).toEqual(given)
    expect(here.value).not.toBe(given)
    expect(values.valueOf(there.number)).toBe(here.value)
    expect(values.take('here', { limit: 2 }).value).toEqual({ limit: 2 })
    expect(values.size).toBe(2)
  })

  it('are forgotten when nothing holds them any more, and not before', () => {
    const values = createValues()
    const { number, value } = values.take('here', { limit: 1 })
    values.take('here', { limit: 1 })
    values.take('there', { limit: 1 })
    values.release(number)
    expect(values.valueOf(number)).toBe(value)
    values.release(number)
    expect(values.size).toBe(1)
    expect(values.take('here', { limit: 1 }).value).toBe(value)
  })

  it('give a freed number out again', () => {
    const values = createValues()
    const { number } = values.take('here', { limit: 1 })
    values.release(number)
    expect(values.size).toBe(0)
    const { number: next } = values.take('here', { limit: 2 })
    expect(next).toBe(number)
    expect(values.valueOf(next)).toEqual({ limit: 2 })
  })

  it('have a place while something is held in it, and say when places change', () => {
    const values = createValues()
    const atFirst = values.placesVersion
    expect(values.placeOf('here')).toBeUndefined()
    const { number, place } = values.take('here', { limit: 1 })
    const withPlace = values.placesVersion
    expect(withPlace).not.toBe(atFirst)
    expect(values.placeOf('here')).toBe(place)
    const second = values.take('here', { limit: 2 })
    values.release(number)
    expect(values.placesVersion).toBe(withPlace)
    values.release(second.number)
    expect(values.placesVersion).not.toBe(withPlace)
    expect(values.placeOf('here')).toBeUndefined()
  })

  it('give places with different names different name spaces', () => {
    const values = createValues()
    const one = values.take('one', { limit: 1 }).place
    const other = values.take('other', { limit: 1 }).place
    expect([one.space0, one.space1]).not.toEqual([other.space0, other.space1])
  })
})
