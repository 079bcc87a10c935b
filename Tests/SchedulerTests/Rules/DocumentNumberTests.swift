import Foundation
import GoogleOAuth
import TestSupport
import Testing

@testable import Base
@testable import Scheduler
@testable import Storage

extension DocumentedNumber {
    fileprivate static var all: [DocumentedNumber] { sentences + confirmations }

    private static let sentences: [DocumentedNumber] = [
        DocumentedNumber("docs/architecture.md", "It lasts \(Lease.span.seconds) seconds"),
        DocumentedNumber(
            "docs/architecture.md",
            """
            A request is sent only if its lease lasts for \(defaults.leaseNeededToSend.seconds) seconds more: \
            \(defaults.requestDeadline.seconds) for the response
            """
        ),
        DocumentedNumber("docs/architecture.md", "whose \(defaults.requestDeadline.seconds) seconds pass"),
        DocumentedNumber(
            "docs/architecture.md",
            "the grant keeps its lease for \(RefreshRules.maximumUnansweredWork.seconds) seconds more"
        ),
        DocumentedNumber("docs/architecture.md", "not taken over in the \(Lease.span.seconds) seconds after an outage"),
        DocumentedNumber(
            "docs/architecture.md",
            "the grant is tried again \(RefreshRules.retryUnreadableAfter.spelled) later"
        ),
        DocumentedNumber(
            "docs/architecture.md",
            "but \(ConsecutiveClientErrors.minimumSpan.spelled) of these without a success opens the breaker"
        ),
        DocumentedNumber("docs/architecture.md", "that kept it open for \(Breaker.minimumOutage.spelled)"),
        DocumentedNumber("docs/glossary.md", "that of a client's fault of \(Breaker.minimumOutage.spelled)"),
        DocumentedNumber(
            "docs/runbook.md",
            """
            After \(ConsecutiveClientErrors.minimumSpan.spelled) without a success it tries one of the client's grants at \
            a time, at least every \(Breaker.maximumProbeDelay.spelled)
            """
        ),
        DocumentedNumber("docs/architecture.md", "the rate of the last \(RefusalRate.span.spelled)"),
        DocumentedNumber("docs/architecture.md", "at \(RefreshRules.maximumDoubt.minutes) minutes in any case"),
        DocumentedNumber(
            "docs/architecture.md",
            "a wave since, or in the \(ClientHealth.waveReach.minutes) minutes before its first refusal"
        ),
        DocumentedNumber(
            "docs/architecture.md",
            "have worked again: for at most \(RefreshRules.maximumDoubt.minutes) minutes"
        ),
        DocumentedNumber(
            "docs/architecture.md",
            """
            up to \(ClientHealth.maximumUnconfirmedEnds) grants whose first refusal took effect in the \
            \(ClientHealth.recallSpan.spelled) before
            """
        ),
        DocumentedNumber(
            "docs/runbook.md",
            """
            takes back up to \(ClientHealth.maximumUnconfirmedEnds) that ended in the \
            \(ClientHealth.recallSpan.spelled) before the wave was recognised
            """
        ),
        DocumentedNumber(
            "docs/runbook.md",
            "Each ends only if \(RefreshRules.maximumDoubt.minutes) minutes of tries confirm it"
        ),
        DocumentedNumber("docs/runbook.md", "of less than \(RefreshRules.maximumDoubt.minutes) minutes ends no grant"),
        DocumentedNumber("docs/runbook.md", "wait for at most \(RefreshRules.maximumDoubt.minutes) minutes"),
        DocumentedNumber(
            "docs/runbook.md",
            """
            might last longer than \(RefreshRules.maximumDoubt.minutes) minutes**, stop everything before the first \
            grants are \(RefreshRules.maximumDoubt.minutes) minutes in doubt
            """
        ),
        DocumentedNumber(
            "docs/guarantees.md",
            "again and again; for less than \(RefreshRules.maximumDoubt.minutes) minutes"
        ),
        DocumentedNumber(
            "docs/services.md",
            "For \(ClientHealth.recallSpan.spelled) after Google's first refusal the code"
        ),
        DocumentedNumber(
            "docs/status.md",
            "no refusal counts before it is over or \(RefreshRules.maximumDoubt.minutes) minutes have passed"
        ),
        DocumentedNumber(
            "docs/status.md",
            "which is tried every \(RefreshRules.retryUnreadableAfter.spelled)"
        ),
        DocumentedNumber("docs/compared.md", "up to \(RefreshRules.maximumDoubt.minutes) minutes end no grant"),
        DocumentedNumber(
            "README.md",
            "refuses good tokens by mistake for less than \(RefreshRules.maximumDoubt.minutes) minutes"
        ),
    ]

    private static let confirmations = [
        DocumentedNumber("docs/architecture.md", confirmationSentence),
        DocumentedNumber("docs/runbook.md", confirmationSentence),
    ]

    private static var confirmationSentence: String {
        let minutes: [String] = RefreshRules.confirmationTimes.map { "\($0.minutes)" }
        let earlier = minutes.dropLast().joined(separator: ", ")
        return "\(earlier) and \(minutes.last ?? "") minutes after its first refusal"
    }

    private static let defaults = EngineConfiguration(workerName: "1-a")
}

@Suite("The numbers of the rules")
struct DocumentNumberTests {
    private static func text(of file: String) throws -> String {
        let path = URL(filePath: #filePath).appending(path: "../../../../\(file)").standardized
        return try String(contentsOf: path, encoding: .utf8)
    }

    @Test("The phases of a refresh are those that the architecture page prints")
    func phases() throws {
        let page = try Self.text(of: "docs/architecture.md")
        let block = try #require(page.split(separator: "<!-- Refresh.Phase -->").last?.split(separator: "```")[1])
        let printed = block.split(separator: "\n").filter { $0.hasPrefix("case ") }
        let code = try Self.text(of: "Sources/Scheduler/Refresh/Refresh.swift")
        let phase = try #require(code.split(separator: "enum Phase: Sendable {").last)
        let body = try #require(phase.split(separator: "\n    }\n").first)
        let lines = body.split(separator: "\n").map { $0.trimmingPrefix { $0 == " " } }
        let cases = lines.filter { $0.hasPrefix("case ") }
        #expect(printed.count == 6 && printed.map(String.init) == cases.map(String.init))
    }

    @Test("are those that the pages name", arguments: DocumentedNumber.all)
    func pages(number: DocumentedNumber) throws {
        #expect(try number.isOnPage)
    }

    @Test("The alarm about grants in doubt names the longest doubt")
    func alarm() throws {
        var fixture = RulesFixture()
        for _ in 0..<200 { fixture.health.recordAnswer(isRefusal: true, at: fixture.now) }
        var grant = try Sample.grant()
        let alarm = try #require(fixture.refuse(.invalidGrant, on: &grant).alarm)
        let minutes = RefreshRules.maximumDoubt.minutes
        #expect(
            alarm.text.contains("each is confirmed for up to \(minutes) minutes before it ends; see docs/runbook.md#")
        )
    }
}
