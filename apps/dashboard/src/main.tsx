import { render } from 'preact'
import './ui/theme/tokens.css'
import './ui/theme/base.css'
import { startSession } from './api/session.ts'
import { App } from './app.tsx'
import { startRouter } from './ui/navigation/router.ts'
import { startTheme } from './ui/theme/theme.ts'

startTheme()
startRouter()
void startSession()

const root = document.getElementById('app')
if (root !== null) render(<App />, root)
