import { describe, expect, it } from 'vitest'
import { acceptedFormat } from './exposition.ts'

describe('acceptedFormat', () => {
  it.each([
    ['no header', undefined, 'prometheus'],
    ['an empty header', '', 'prometheus'],
    ['curl', '*/*', 'prometheus'],
    ['a browser', 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8', 'prometheus'],
    ['OpenMetrics alone', 'application/openmetrics-text', 'openmetrics'],
    ['OpenMetrics, spelt otherwise', 'Application/OpenMetrics-Text; Version="1.0.0"', 'openmetrics'],
    [
      'Prometheus 2',
      [
        'application/openmetrics-text;version=1.0.0',
        'application/openmetrics-text;version=0.0.1;q=0.75',
        'text/plain;version=0.0.4;q=0.5',
        '*/*;q=0.1',
      ].join(','),
      'openmetrics',
    ],
    [
      'Prometheus 3',
      [
        'application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6',
        'application/openmetrics-text;version=0.0.1;q=0.5',
        'text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4',
        'text/plain;version=0.0.4;q=0.3',
        '*/*;q=0.2',
      ].join(','),
      'openmetrics',
    ],
    ['an old version of OpenMetrics', 'application/openmetrics-text;version=0.0.1', 'prometheus'],
    ['text wanted more', 'application/openmetrics-text;q=0.4,text/plain;version=0.0.4;q=0.5', 'prometheus'],
    ['both wanted the same', 'text/plain,application/openmetrics-text', 'openmetrics'],
    [
      'text of another version wanted more',
      'text/plain;version=1.0.0,application/openmetrics-text;q=0.5',
      'openmetrics',
    ],
    ['anything wanted more', 'application/openmetrics-text;q=0.5,*/*', 'prometheus'],
    ['text less than the rest', 'application/openmetrics-text;q=0.5,text/plain;q=0.1,*/*', 'openmetrics'],
    ['OpenMetrics excluded', 'application/openmetrics-text;q=0', 'prometheus'],
    ['a weight that is none', 'application/openmetrics-text;q=much', 'prometheus'],
  ])('%s', (_name, accept, format) => {
    expect(acceptedFormat(accept)).toBe(format)
  })
})
