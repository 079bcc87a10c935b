import Crypto
import Foundation
import Telemetry
import TestSupport
import Testing

@testable import Base
@testable import Scheduler
@testable import Status
@testable import Storage

@Suite("The table of alarms in docs/status.md")
struct AlarmTableTests {
    private static let root = URL(filePath: #filePath).appending(path: "../../..").standardized

    /// The cells of each row, as in "alarm", "raised when", "ends when", "test".
    private static func rows() throws -> [[String]] {
        let text = try String(contentsOf: root.appending(path: "docs/status.md"), encoding: .utf8)
        return text.split(separator: "\n").filter { $0.hasPrefix("| [") }.map { line in
            line.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
        }
    }

    @Test("has each alarm, in the order of the runbook, with its end")
    func kinds() throws {
        let rows = try Self.rows()
        let kinds = AlarmKind.allCases.map(\.rawValue)
        #expect(rows.map(\.first) == kinds.map { "[\($0)](runbook.md#\($0))" })
        #expect(rows.allSatisfy { $0.count == 4 && !$0.contains("") })
    }

    @Test("names tests that exist")
    func tests() throws {
        let tests = FileManager.default.enumerator(atPath: Self.root.appending(path: "Tests").path)
        let paths = tests?.allObjects as? [String] ?? []
        let files = Set(paths.compactMap { $0.split(separator: "/").last.map(String.init) })
        let suites = try String(
            contentsOf: Self.root.appending(path: "Tests/StatusTests/FindingTests.swift"),
            encoding: .utf8
        )
        for row in try Self.rows() {
            for name in row[3].split(separator: ", ").map({ $0.trimmingCharacters(in: ["`"]) }) {
                #expect(files.contains("\(name).swift") || suites.contains("struct \(name) "), "\(row[0]): \(name)")
            }
        }
    }
}
