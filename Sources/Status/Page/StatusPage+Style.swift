/// The style of the page.
///
/// The policy has its hash, so it is a constant.
extension StatusPage {
    /// The text of each colour has a contrast of at least 4.5 to its background, in both schemes.
    static let style: StaticString = """
        :root {
          color-scheme: light dark;
          --page: #f4f6f8; --card: #fff; --line: #d5dbe1; --text: #1b1f24; --muted: #57606a; --link: #0a50c2;
          --good: #116329; --good-back: #dcf5e3; --good-bar: #1a7f37;
          --bad: #93201a; --bad-back: #fde8e6; --bad-bar: #b3261e;
          --soon: #7a4100; --soon-back: #fff0d6; --tomorrow: #0a4a9e; --tomorrow-back: #e0edff;
          --neutral: #424a53; --neutral-back: #e8ecf0; --neutral-bar: #5f6b7a; --late-bar: #0a50c2;
        }
        @media (prefers-color-scheme: dark) {
          :root {
            --page: #0d1117; --card: #161b22; --line: #343b44; --text: #e6edf3; --muted: #9da7b3; --link: #84bbff;
            --good: #7ee2a0; --good-back: #12331f; --good-bar: #3fb950;
            --bad: #ffb4ab; --bad-back: #4a1812; --bad-bar: #f47067;
            --soon: #ffc680; --soon-back: #4a2f00; --tomorrow: #a8cdff; --tomorrow-back: #14305a;
            --neutral: #c9d1d9; --neutral-back: #2b323b; --neutral-bar: #8b949e; --late-bar: #6cb0ff;
          }
        }
        * { box-sizing: border-box; }
        body {
          margin: 0; background: var(--page); color: var(--text);
          font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: anywhere;
        }
        header, main { max-width: 74rem; margin: 0 auto; padding: 0 1rem; }
        main { padding-bottom: 2rem; }
        h1 { margin: 0; font-size: 1.75rem; line-height: 1.2; }
        h2 { margin: 0 0 .5rem; font-size: 1.125rem; }
        h3 { margin: 1rem 0 .25rem; font-size: .9375rem; }
        pre { white-space: pre-wrap; font: .875rem/1.4 ui-monospace, monospace; }
        p, ul, dl, figure, pre { margin: 0 0 .5rem; }
        ul { padding-left: 1.25rem; }
        section > :last-child, li > :last-child { margin-bottom: 0; }
        a { color: var(--link); }
        code, .code { font: .875em/1.4 ui-monospace, monospace; }
        time, time + small { white-space: nowrap; font-variant-numeric: tabular-nums; }
        .facts, small, caption, #credential, .top, .axis, .scale { color: var(--muted); }
        small { font-size: inherit; }
        .facts, caption, #credential, .top, .axis { font-size: .875rem; }

        header { display: flex; gap: 1.25rem; padding-top: .75rem; }
        .name { font-weight: 700; }
        .tools { display: flex; flex-wrap: wrap; align-items: start; gap: .25rem 2rem; margin-bottom: 1.25rem; }
        .tools p { margin: 0; }
        .tools form { flex: 0 1 31rem; }
        form { display: flex; flex-wrap: wrap; align-items: center; gap: .25rem .5rem; }
        #credential { flex-basis: 100%; }
        input, button, select {
          min-height: 2.25rem; padding: .25rem .75rem; border: 1px solid var(--neutral-bar); border-radius: .375rem;
          background: var(--card); color: inherit; font: inherit;
        }
        input { flex: 1 1 9rem; min-width: 0; }
        ::placeholder { color: var(--muted); opacity: 1; }
        button, summary { cursor: pointer; font-weight: 600; }
        .filter { gap: .5rem 1rem; margin-bottom: .75rem; }
        .filter [type=text] { width: 11rem; }
        .filter [type=checkbox] { min-height: 0; }
        details { margin-bottom: .75rem; }
        details form { margin-top: .5rem; }
        details p { flex-basis: 100%; }
        :focus-visible { outline: 3px solid var(--link); outline-offset: 2px; }
        #updates, #zone { color: var(--muted); font-size: .875rem; }
        #updates.failed { padding: .5rem .75rem; border-radius: .375rem; background: var(--bad-back); color: var(--bad); }

        section { margin-bottom: 1rem; padding: 1rem; border: 1px solid var(--line); border-radius: .5rem;
          background: var(--card); }
        .verdict { display: grid; grid-template-columns: auto 1fr; gap: .25rem .75rem; align-items: center;
          margin: .5rem 0 1rem; }
        .verdict p { grid-column: 1 / -1; margin: 0; }
        .mark { width: 2.25rem; height: 2.25rem; fill: none; stroke: #fff; stroke-width: 2.5; }
        .mark circle { stroke: none; }
        .mark.good circle { fill: #1a7f37; }
        .mark.bad circle { fill: #b3261e; }
        .mark.soon circle { fill: #9a5b00; }
        .mark.tomorrow circle { fill: #0a50c2; }
        .mark.neutral circle { fill: #5f6b7a; }
        .label { display: inline-block; padding: 0 .5rem; border-radius: 1rem; font-size: .875rem; font-weight: 600;
          white-space: nowrap; }
        .label.good { background: var(--good-back); color: var(--good); }
        .label.bad { background: var(--bad-back); color: var(--bad); }
        .label.soon { background: var(--soon-back); color: var(--soon); }
        .label.tomorrow { background: var(--tomorrow-back); color: var(--tomorrow); }
        .label.neutral { background: var(--neutral-back); color: var(--neutral); }
        .concerns { padding: 0; list-style: none; }
        .concerns li + li { margin-top: .75rem; padding-top: .75rem; border-top: 1px solid var(--line); }
        .concerns .effect { margin-left: 1.5rem; }
        .concerns p { margin: 0; }

        .charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(16rem, 1fr)); gap: 1rem 2rem;
          margin-bottom: .5rem; }
        figcaption strong { float: right; font-size: 1.25rem; line-height: 1.2; font-variant-numeric: tabular-nums; }
        .plot { display: grid; grid-template-columns: 3.5rem 1fr; gap: 0 .5rem; }
        .plot svg { display: block; width: 100%; height: 5rem; border-top: 1px dashed var(--line);
          border-bottom: 1px solid var(--neutral-bar);
          background: linear-gradient(var(--line), var(--line)) 0 50% / 100% 1px no-repeat; }
        figure p { margin: 0; }
        .axis, .scale { display: flex; justify-content: space-between; }
        .axis { grid-column: 2; }
        .scale { flex-direction: column; font-size: .75rem; line-height: 1; text-align: right;
          font-variant-numeric: tabular-nums; }
        .refreshed { fill: var(--good-bar); }
        .failed { fill: var(--bad-bar); }
        .lateness { fill: var(--late-bar); }

        .columns { display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 0 1rem; }
        .columns > div { display: flex; flex-direction: column; }
        .columns > div > :last-child { flex-grow: 1; }
        .figures time { white-space: normal; }
        .figures { align-self: start; font-size: .875rem; font-variant-numeric: tabular-nums; }
        table { width: 100%; margin-bottom: .5rem; border-collapse: collapse; }
        caption { padding-bottom: .25rem; text-align: left; }
        th, td { padding: .375rem .75rem .375rem 0; border-top: 1px solid var(--line); text-align: left;
          vertical-align: top; }
        th { font-weight: inherit; }
        th, td { overflow-wrap: normal; }
        thead th { border-top: 0; color: var(--muted); font-size: .875rem; }
        th code, td code, th .code, td .code { overflow-wrap: break-word; }
        tbody th bdi { display: inline-block; min-width: min(100%, 17rem); overflow-wrap: anywhere; }
        .number { font-variant-numeric: tabular-nums; white-space: nowrap; }
        .number, .figures tr > :not(:first-child) { text-align: right; }
        .number:not(:last-child) { padding-right: 1.25rem; }
        tr > :last-child { padding-right: 0; }
        dl { display: grid; grid-template-columns: 9rem 1fr; gap: .25rem 1rem; margin-bottom: 1rem; }
        dt { color: var(--muted); }
        dd { margin: 0; }
        .user { font-size: 1.125rem; font-weight: 600; }

        @media (max-width: 62rem) {
          .columns { grid-template-columns: minmax(0, 1fr); }
          .tools form { flex-basis: 100%; }
          section { margin-left: -.5rem; margin-right: -.5rem; padding: .75rem; }
          thead[role] { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
          table[role], [role] > caption, tbody[role], tr[role], tr[role] > * { display: block; }
          tbody[role] tr { padding: .5rem 0; border-top: 1px solid var(--line); }
          tbody[role] > tr > * { padding: .0625rem 0 .0625rem 5.75rem; border: 0; }
          [data-label]::before { content: attr(data-label); float: left; margin-left: -5.75rem; color: var(--muted);
            font-size: .875rem; }
          tbody[role] > tr > th { padding-left: 0; }
          th[data-label]::before { content: none; }
          [role] > .number { text-align: left; }
          .compact tr > .number { text-align: right; }
          .compact tr, .changes tr { display: grid; grid-template-columns: 1fr auto; }
          .compact tbody tr > *, .changes tbody tr > * { padding: 0; }
          .compact [data-label]::before, .changes [data-label]::before { content: none; }
          .changes small { display: none; }
          .changes tr > * { font-size: .8125rem; }
          .changes tr > :nth-child(even) { padding-left: .5rem; text-align: right; }
          .compact td:last-child { grid-column: 1 / -1; color: var(--muted); font-size: .875rem; }
          dl { grid-template-columns: 1fr; gap: 0; }
          dd { margin-bottom: .5rem; }
        }

        """
}
