import { describe, expect, it } from 'vitest'
import { parseView, serves } from './cluster-view.ts'

const TEXT = `b2 127.0.0.1:7002@17002,host slave a1 0 1426238316232 4 connected
a1 127.0.0.1:7001@17001 myself,master - 0 0 1 connected 0-5460 5462 [93->-c3] [94-<-c3]
`

describe('parseView', () => {
  it('reads CLUSTER NODES, in the order of ports', () => {
    expect(parseView(TEXT)).toEqual([
      {
        id: 'a1',
        port: 7001,
        masterId: undefined,
        slots: [
          [0, 5460],
          [5462, 5462],
        ],
      },
      { id: 'b2', port: 7002, masterId: 'a1', slots: [] },
    ])
  })
})

describe('serves', () => {
  it('includes both ends of a range', () => {
    const [master] = parseView(TEXT)
    const served = [0, 5460, 5461, 5462, 5463].filter((slot) => serves(master!, slot))
    expect(served).toEqual([0, 5460, 5462])
  })
})
