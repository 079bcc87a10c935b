import Foundation
import Scheduler
import Testing

@testable import Storage

@Suite("Reasons in the documents")
struct ReasonDocumentTests {
    @Test("The documents name every reason that the worker gives", arguments: ["services.md", "openapi.yaml"])
    func named(document: String) throws {
        let folder = URL(filePath: #filePath).appending(path: "../../../docs").standardized
        let text = try String(contentsOf: folder.appending(path: document), encoding: .utf8)
        let codes = GrantReason.givenByWorker.map(\.rawValue) + VendReason.allCases.map(\.rawValue)
        #expect(codes.filter { !text.contains("`\($0)`") } == [])
    }

    @Test("The runbook has a row for every reason that the worker gives")
    func runbook() throws {
        let file = URL(filePath: #filePath).appending(path: "../../../docs/runbook.md").standardized
        let lines = try String(contentsOf: file, encoding: .utf8).split(separator: "\n")
        let missing = GrantReason.givenByWorker.filter { reason in
            !lines.contains { $0.hasPrefix("| `\(reason.rawValue)` |") }
        }
        #expect(missing == [])
    }

    @Test("The list of the worker's reasons has every one of its file")
    func complete() throws {
        let path = "../../../Sources/Storage/Model/GrantReason.swift"
        let file = URL(filePath: #filePath).appending(path: path).standardized
        let text = try String(contentsOf: file, encoding: .utf8)
        let named = text.matches(of: /GrantReason\(rawValue: "(\w+)"\)/).map { String($0.1) }
        #expect(Set(named) == Set(GrantReason.givenByWorker.map(\.rawValue)))
    }

    @Test("A reason is a code that the store keeps unchanged", arguments: GrantReason.givenByWorker)
    func codes(reason: GrantReason) {
        #expect(GrantReason(rawValue: reason.rawValue).rawValue == reason.rawValue)
    }
}
