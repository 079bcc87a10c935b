import Base
import Foundation
import Testing

@testable import Scheduler
@testable import Telemetry

@Suite("The page of the metrics log")
struct MetricsPageTests {
    @Test("has a table of each event, as the code makes it")
    func isCurrent() throws {
        #expect(try MetricsDocument().tables == MetricsDocument.tables, "run: make pages")
    }

    @Test("matches each event's output: fields, types, and presence")
    func samples() throws {
        for event in MetricsSamples.events {
            let lines = try MetricsSamples.all.filter { $0.name == event.name }.map { sample in
                let text = sample.line(at: Timestamp(milliseconds: 0), worker: "w").text
                let line = try #require(try parseLines(text + "\n").first)
                for field in MetricsField.common + event.fields where line[field.name] != nil {
                    let isOfKind = Self.matches(line[field.name] as Any, of: field.name, in: text, field.type)
                    #expect(isOfKind, "\(event.name).\(field.name)")
                }
                return Set(line.keys)
            }
            let known = Set((MetricsField.common + event.fields).map(\.name))
            #expect(lines.allSatisfy { $0.isSubset(of: known) }, "\(event.name)")
            for field in MetricsField.common + event.fields {
                let occurrences = lines.count { $0.contains(field.name) }
                if field.type.hasSuffix("?") {
                    #expect(0 < occurrences && occurrences < lines.count, "\(event.name).\(field.name)")
                } else {
                    #expect(occurrences == lines.count, "\(event.name).\(field.name)")
                }
            }
        }
    }

    @Test("has a sample of each event that the program can make")
    func completeness() throws {
        let sources = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().appending(path: "Sources")
        var made: Set<String> = [RefreshEvent.name]
        for path in try FileManager.default.subpathsOfDirectory(atPath: sources.path) where path.hasSuffix(".swift") {
            let text = String(decoding: try Data(contentsOf: sources.appending(path: path)), as: UTF8.self)
            for match in text.matches(of: /\n +MetricsEvent\("([a-z_]+)"\)/) { made.insert(String(match.1)) }
        }
        #expect(made == Set(MetricsSamples.events.map(\.name)))
    }

    /// Returns `true` if a value in a line's text has the type; the parsed value alone cannot distinguish `1` from
    /// `true`.
    private static func matches(_ value: Any, of field: String, in text: String, _ type: String) -> Bool {
        let isBoolean = ["true", "false"].contains { text.contains("\"\(field)\":\($0)") }
        let number = isBoolean ? nil : value as? Double
        return switch type.split(separator: "?").first {
        case "string": value is String
        case "boolean": isBoolean
        case "integer": number != nil && number == number?.rounded()
        case "number": number != nil
        default: false
        }
    }
}
