import Base
import Foundation
import Testing

@testable import Telemetry

@Suite("The schema of the metrics log")
struct MetricsSchemaTests {
    /// One sample of each event, in the order of the document.
    private static let events = MetricsSamples.all.reduce(into: [MetricsEvent]()) { events, sample in
        if events.last?.name != sample.name { events.append(sample) }
    }

    @Test("matches the document, table by table")
    func document() throws {
        let document = try MetricsDocument()
        #expect(document.headings == ["Every line"] + Self.events.map { "`\($0.name)`" })
        #expect(document.tables["Every line"] == MetricsDocument.table(MetricsField.common))
        for event in Self.events {
            let expected = MetricsDocument.table(event.fields)
            #expect(document.tables["`\(event.name)`"] == expected, "\(expected.joined(separator: "\n"))")
        }
    }

    @Test("matches each event's output: fields, types, and presence")
    func samples() throws {
        for event in Self.events {
            let lines = try MetricsSamples.all.filter { $0.name == event.name }.map { sample in
                let text = sample.line(at: Timestamp(milliseconds: 0), worker: "w").text
                let line = try #require(try parseLines(text + "\n").first)
                for field in MetricsField.common + event.fields where line[field.name] != nil {
                    let isOfKind = Self.matches(line[field.name] as Any, of: field.name, in: text, field.kind)
                    #expect(isOfKind, "\(event.name).\(field.name)")
                }
                return Set(line.keys)
            }
            let known = Set((MetricsField.common + event.fields).map(\.name))
            #expect(lines.allSatisfy { $0.isSubset(of: known) }, "\(event.name)")
            for field in MetricsField.common + event.fields {
                let occurrences = lines.count { $0.contains(field.name) }
                if field.isAlwaysGiven {
                    #expect(occurrences == lines.count, "\(event.name).\(field.name)")
                } else {
                    #expect(0 < occurrences && occurrences < lines.count, "\(event.name).\(field.name)")
                }
            }
        }
    }

    @Test("has a sample of each event that the program can make")
    func completeness() throws {
        let sources = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().appending(path: "Sources/Telemetry/Metrics")
        var made: Set<String> = [RefreshEvent.name]
        for file in try FileManager.default.contentsOfDirectory(at: sources, includingPropertiesForKeys: nil) {
            let text = String(decoding: try Data(contentsOf: file), as: UTF8.self)
            for match in text.matches(of: /\n +MetricsEvent\("([a-z_]+)"\)/) { made.insert(String(match.1)) }
        }
        #expect(made == Set(Self.events.map(\.name)))
    }

    /// Returns `true` if a value in a line's text has the type; the parsed value alone cannot distinguish `1` from
    /// `true`.
    private static func matches(_ value: Any, of field: String, in text: String, _ kind: MetricsField.Kind) -> Bool {
        let isBoolean = ["true", "false"].contains { text.contains("\"\(field)\":\($0)") }
        let number = isBoolean ? nil : value as? Double
        return switch kind {
        case .string: value is String
        case .boolean: isBoolean
        case .integer: number != nil && number == number?.rounded()
        case .number: number != nil
        }
    }
}
