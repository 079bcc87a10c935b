import Foundation
import Testing

@testable import Telemetry

@Suite("Kinds of alarms")
struct AlarmKindTests {
    @Test("docs/metrics-log.md lists exactly the kinds with their meanings")
    func listed() throws {
        let file = URL(filePath: #filePath).appending(path: "../../../docs/metrics-log.md").standardized
        let section = try String(contentsOf: file, encoding: .utf8).split(separator: "\n")
            .drop { $0 != "### `alarm`" }.dropFirst().prefix { !$0.hasPrefix("#") }
        let listed = section.filter { $0.hasPrefix("- `") }.map(String.init)
        #expect(listed == AlarmKind.allCases.map { "- `\($0.rawValue)`: \($0.meaning)" })
    }
}
