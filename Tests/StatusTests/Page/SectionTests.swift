import Base
import Telemetry
import Testing

@testable import Scheduler
@testable import Status
@testable import Storage

@Suite("The sections of the status page")
struct SectionTests {
    private static func section(_ id: String, of contents: StatusPage) -> String {
        let page = contents.html
        guard let start = page.firstRange(of: "<section id=\"\(id)\""),
            let end = page[start.lowerBound...].firstRange(of: "</section>")
        else { return "" }
        let section = String(page[start.lowerBound..<end.lowerBound])
        return section.replacing(/<[^>]*>/) { $0.0.hasPrefix("</t") ? " " : "" }
    }

    @Test("say which of them the database would have to answer")
    func unknown() {
        var contents = Example.quiet()
        contents.snapshot = nil
        for id in ["grants", "workers", "notices"] {
            #expect(Self.section(id, of: contents).contains("unknown The database cannot be asked."))
        }
        contents.findings = nil
        let page = contents.html
        #expect(page.contains("<h1>State unknown</h1>") && page.contains("has not judged its state yet"))
    }

    @Test("say so if a part is empty")
    func empty() {
        let contents = Example.quiet()
        let page = contents.html
        #expect(page.contains("<h1>All is well</h1>"))
        #expect(!page.contains(#"id="concerns""#))
        #expect(Self.section("changes", of: contents).contains("has not changed the state of a grant"))
        #expect(Self.section("clients", of: contents).contains("No client id is configured"))
        #expect(Self.section("workers", of: contents).contains("No worker reported"))
        #expect(Self.section("notices", of: contents).contains("does not notify a backend"))
    }

    @Test("show the grants by state, and those that a person should know of")
    func grants() {
        var contents = Example.quiet()
        var statistics = Example.statistics(
            [.active: 9_876_543, .suspended: 12],
            due: 34,
            oldest: Example.now - .seconds(75)
        )
        statistics.refreshTokensEnding = 5
        statistics.idle = 6
        statistics.expired.add(7, oldest: Example.now - .seconds(3600), client: "a")
        contents.snapshot?.grants = statistics
        let section = Self.section("grants", of: contents)
        #expect(section.contains("9,876,555 grants in all, 9,876,543 connected."))
        for state in GrantState.allCases { #expect(section.contains("\(state.rawValue) ")) }
        #expect(section.contains("suspended 12 "))
        #expect(section.contains("due 34 To be refreshed now, the oldest since "))
        #expect(section.contains("(1 min 15 s ago)."))
        #expect(section.contains("expired 7 Connected without a valid access token, the oldest since "))
        #expect(section.contains("ending 5 The refresh token ends") && section.contains("idle 6 Not refreshed"))
    }

    @Test("align the numbers of a card at their right, headings and values")
    func numbers() {
        var contents = Example.quiet()
        contents.snapshot?.grants = Example.statistics([.active: 9_876_543, .suspended: 12])
        contents.services = ["mailer": LifetimeCounts.Vends()]
        let page = contents.html
        #expect(page.contains(#"class="number">Grants</th>"#))
        #expect(page.contains(#"class="number">9,876,543</td>"#) && page.contains(#"class="number">12</td>"#))
        for heading in ["Tokens", "Errors", "Half", "95 %"] {
            #expect(page.contains(#"scope="col" class="number">\#(heading)</th>"#))
        }
    }

    @Test("follow the verdict, and the clients follow the concerns while nothing is sent for one")
    func order() {
        func sections(_ page: StatusPage) -> [String] {
            Markup(page.html).tags.filter { $0.name == "section" || $0.name == "form" || $0.name == "h1" }
                .map { tag in tag.attributes.first { $0.name == "id" }.map { String($0.value) } ?? String(tag.name) }
        }
        var contents = Example.quiet()
        contents.clients = [Example.client("a", ceiling: 40)]
        #expect(
            sections(contents)
                == ["h1", "form", "activity", "grants", "notices", "services", "workers", "clients", "changes"]
        )
        contents.clients.append(Example.client("b", .open("invalid_client"), ceiling: 40))
        contents.findings = [Finding(.breakerOpen, "the text")]
        #expect(sections(contents).prefix(5) == ["h1", "form", "concerns", "clients", "activity"])
    }

    @Test("show each concern with its start, its command and a link to its part of the runbook")
    func concerns() throws {
        var contents = Example.quiet()
        contents.findings = Example.findings(client: "client", text: "the text")
        let section = Self.section("concerns", of: contents)
        let page = contents.html
        let shown = try #require(contents.findings).prefix(10)
        for concern in shown {
            let text = concern.text.replacing("'", with: "&#39;")
            #expect(section.contains("\(concern.severity.urgency) \(text)"))
            #expect(section.contains("More: \(concern.command)."))
            #expect(page.contains(##"<a href="runbook#\##(concern.kind)">"##))
        }
        #expect(section.contains("more are not shown: refresh-worker status"))
        #expect(section.contains("(1 min 30 s ago)"))
    }

    @Test(
        "name and colour the verdict by the most urgent concern",
        arguments: [
            (Finding.Kind.grantsExpired, "Users are without tokens now", "bad"),
            (.breakerOpen, "Users will soon be without tokens", "soon"), (.grantsIdle, "Look within a day", "tomorrow"),
        ]
    )
    func severity(kind: Finding.Kind, heading: String, colour: String) {
        var contents = Example.quiet()
        contents.findings = [Finding(kind, "the text")]
        let page = contents.html
        #expect(page.contains("<h1>\(heading)</h1>") && page.contains("mark \(colour)"))
        #expect(page.contains("label \(colour)"))
    }

    @Test("say of a concern that is not urgent that it can wait, because it does not happen only tomorrow")
    func urgency() {
        var contents = Example.quiet()
        contents.findings = [Finding(.grantsIdle, "the text")]
        #expect(Self.section("concerns", of: contents).contains("can wait the text"))
        #expect(!contents.html.replacing(/<[^>]*>/) { _ in "" }.contains("tomorrow the"))
    }

    @Test("show the clients that something is wrong with before the others, ten at most")
    func clients() throws {
        var contents = Example.quiet()
        contents.clients = (1...1000).map { Example.client("client-\($0)", ceiling: 40) }
        contents.clients[500].isSlowed = true
        contents.clients[700].pause = .seconds(90)
        contents.clients[900].breaker = .open("invalid_client")
        contents.clients[900].ceiling = 0.25
        contents.clients[900].nextProbe = .seconds(8)
        let section = Self.section("clients", of: contents)
        let first = try #require(
            section.firstRange(
                of: "client-901 open invalid_client, next probe in 8 s 0.3 a second none in the last day none known"
            )
        )
        let paused = try #require(section.firstRange(of: "client-701 closed 40 a second paused for 1 min 30 s more"))
        let other = try #require(section.firstRange(of: "client-1 closed 40 a second none in the last day none known"))
        #expect(first.lowerBound < paused.lowerBound && paused.lowerBound < other.lowerBound)
        #expect(section.contains("client-501 closed 40 a second slowed by the endpoint"))
        #expect(section.contains("10 of 1,000 client ids; 990 more are not shown."))
        #expect(section.ranges(of: "client-").count == 10)
    }

    @Test("show what the endpoint answered last, since when and how often, and why grants are tried again")
    func failures() {
        var contents = Example.quiet()
        contents.clients = [Example.client("a", ceiling: 40)]
        contents.clients[0].failures.record("http_503", status: 503, at: Example.now - .seconds(70))
        contents.clients[0].failures.record("http_503", status: 503, at: Example.now - .seconds(4))
        let clients = Self.section("clients", of: contents)
        #expect(clients.contains("HTTP 503, 2 since "))
        #expect(clients.contains("(1 min 10 s ago), the last 4 s ago"))
        contents.snapshot?.grants.retryingReasons = [
            GrantReason(rawValue: "timeout"): 3, GrantReason(rawValue: "http_503"): 1_200,
        ]
        #expect(Self.section("grants", of: contents).contains("Retrying: 1,200 http_503, 3 timeout"))
    }

    @Test("have the time of the judgement in the heading, and that of the database if it is another")
    func judgement() {
        var contents = Example.quiet()
        contents.judgedAt = Example.now - .seconds(3)
        contents.snapshot?.at = contents.judgedAt
        let heading = contents.html.replacing(/<[^>]*>/) { _ in "" }
        #expect(heading.contains("As of 2027-01-15T07:59:57Z (3 s ago)."))
        contents.judgedAt = Example.now
        let other = contents.html.replacing(/<[^>]*>/) { _ in "" }
        #expect(
            other.contains(
                "As of 2027-01-15T08:00:00Z (now); the database was last read 2027-01-15T07:59:57Z (3 s ago)."
            )
        )
    }

    @Test("show the workers, ten at most")
    func workers() {
        var contents = Example.quiet()
        contents.snapshot?.workers = (1...12).map { Example.worker("worker-\($0)", keys: 2) }
        contents.snapshot?.workers?[0].isRefreshing = false
        let section = Self.section("workers", of: contents)
        #expect(section.contains("worker-1 no 0a1b2c00 2 "))
        #expect(section.contains("worker-2 yes 0a1b2c00 2 "))
        #expect(section.contains("10 of 12 workers; 2 more are not shown."))
    }

    @Test("show how many users' notices wait")
    func notices() {
        var contents = Example.quiet()
        let cases: [(Int, String)] = [
            (0, "No notice waits for delivery."), (1, "The notices of 1 user wait for delivery."),
            (999, "The notices of 999 users wait"), (1000, "The notices of 1,000 or more users wait"),
        ]
        for (count, text) in cases {
            contents.snapshot?.notices = PendingNotices(count: count, oldest: nil)
            #expect(Self.section("notices", of: contents).contains(text))
        }
        contents.snapshot?.notices = PendingNotices(count: 2, oldest: Example.now - .seconds(3))
        #expect(Self.section("notices", of: contents).contains("(3 s ago)"))
    }

    @Test("show the changes of states")
    func changes() {
        var contents = Example.quiet()
        let ended = GrantReason(rawValue: "invalid_grant")
        contents.changes = [
            Example.change(255, at: Example.now - .seconds(61), from: .active, to: .disconnected, reason: ended),
            Example.change(1, at: Example.now, from: .retrying, to: .active, reason: .none),
        ]
        let section = Self.section("changes", of: contents)
        #expect(section.contains("(1 min 1 s ago) 00000000000000ff active → disconnected invalid_grant "))
        #expect(section.contains("(now) 0000000000000001 retrying → active none "))
    }

    @Test("show the five newest changes first, and the others when they are asked for", arguments: [5, 6, 30])
    func olderChanges(count: Int) throws {
        var contents = Example.quiet()
        contents.changes = (1...count).map { number in
            Example.change(
                Int64(number),
                at: Example.now - .seconds(number),
                from: .active,
                to: .retrying,
                reason: GrantReason(rawValue: "timeout")
            )
        }
        let page = contents.html
        let parts = try #require(page.firstMatch(of: /<section id="changes".*?<\/section>/)).0
            .split(separator: #"<details id="older-changes">"#)
        #expect(parts[0].ranges(of: "users?grant=").count == 5)
        let shown = min(count, EngineLog.maximumRecentChanges)
        #expect(parts.count == (count > 5 ? 2 : 1))
        if count > 5 {
            #expect(parts[1].ranges(of: "users?grant=").count == shown - 5)
            #expect(parts[1].contains(">\(shown - 5) older</summary>"))
        }
    }
}
