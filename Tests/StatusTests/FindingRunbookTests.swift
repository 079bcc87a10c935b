import Crypto
import Foundation
import Telemetry
import TestSupport
import Testing

@testable import Base
@testable import Scheduler
@testable import Status
@testable import Storage

@Suite("The runbook")
struct FindingRunbookTests {
    private static func document() throws -> [String] {
        let file = URL(filePath: #filePath).appending(path: "../../../docs/runbook.md").standardized
        return try String(contentsOf: file, encoding: .utf8).split(separator: "\n").map(String.init)
    }

    @Test("has one section for each kind of finding, each alarm and each further alert, in their order")
    func sections() throws {
        let found = try Self.document().filter { $0.hasPrefix("### ") }.map { String($0.dropFirst(4)) }
        let kinds = Finding.Kind.allCases.map(\.rawValue) + AlarmKind.allCases.map(\.rawValue)
        let expected = try Self.alerts().reduce(into: kinds) { if !$0.contains($1) { $0.append($1) } }
        #expect(found == expected)
        #expect(Set(kinds).count == kinds.count, "a kind would have two meanings")
    }

    /// The sections that the alerts for Prometheus name.
    private static func alerts() throws -> [String] {
        let rules = URL(filePath: #filePath).appending(path: "../../../deploy/prometheus/refresh-worker.rules.yml")
        let text = try String(contentsOf: rules.standardized, encoding: .utf8)
        return text.matches(of: /runbook_url: http:.*\/runbook#([a-z_]+)/).map { String($0.1) }
    }

    @Test("says in each section how to look, what to do and what not to do")
    func parts() throws {
        let lines = try Self.document()
        for (index, heading) in lines.enumerated() where heading.hasPrefix("### ") {
            let section = lines[(index + 1)...].prefix { !$0.hasPrefix("#") }
            for part in ["- **Look:** ", "- **Do:** ", "- **Do not:** "] {
                #expect(section.contains { $0.hasPrefix(part) }, "\(heading): \(part)")
            }
        }
    }
}
