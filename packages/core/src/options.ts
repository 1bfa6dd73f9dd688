// What options are checked with, and nothing else of the core: whoever asks a service loads no limiter for it.
export { type ErrorDetails, isSluiceError, SluiceError } from './errors.ts'
export { nearestName } from './nearest-name.ts'
export { numberAdvice } from './option-advice.ts'
export { checkOptionNames, checkSignal, type OptionTaker } from './option-check.ts'
export {
  ANY,
  COST,
  can,
  checkForms,
  FLAG,
  FUNCTION,
  isWhole,
  OBJECT,
  type OptionForm,
  type OptionForms,
} from './option-form.ts'
