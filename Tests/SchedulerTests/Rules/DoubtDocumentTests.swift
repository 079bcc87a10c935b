import Foundation
import GoogleOAuth
import Testing

@testable import Base
@testable import Scheduler

@Suite("The pages about refusals in doubt")
struct DoubtDocumentTests {
    @Test("name the minutes of the confirmations", arguments: ["architecture", "runbook"])
    func confirmations(page: String) throws {
        let file = URL(filePath: #filePath).appending(path: "../../../../docs/\(page).md").standardized
        let text = try String(contentsOf: file, encoding: .utf8)
        let minutes = RefreshRules.confirmationTimes.map { "\($0.wholeMilliseconds / 60_000)" }
        let last = try #require(minutes.last)
        let earlier = minutes.dropLast().joined(separator: ", ")
        #expect(text.contains("\(earlier) and \(last) minutes after its first refusal"))
    }

    @Test("The alarm names the longest doubt")
    func alarm() throws {
        var fixture = RulesFixture()
        for _ in 0..<200 { fixture.health.recordAnswer(isRefusal: true, at: fixture.now) }
        var grant = try Sample.grant()
        let alarm = try #require(fixture.refuse(.invalidGrant, on: &grant).alarm)
        #expect(alarm.text.contains("each is confirmed for up to 50 minutes before it ends; see docs/runbook.md#"))
    }
}
