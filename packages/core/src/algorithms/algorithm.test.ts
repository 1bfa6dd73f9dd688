import { algorithmSuite } from '@sluice/testing'
import type { Limit } from '../rule/limit.ts'
import { ALGORITHMS } from './all-algorithms.ts'

for (const name of Object.keys(ALGORITHMS) as Limit['algorithm'][]) algorithmSuite(name)
