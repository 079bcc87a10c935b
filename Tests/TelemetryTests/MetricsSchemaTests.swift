import Base
import Foundation
import Telemetry
import Testing

@Suite("The schema of the metrics log")
struct MetricsSchemaTests {
    @Test("matches the document, table by table")
    func document() throws {
        let document = try MetricsDocument()
        #expect(document.headings == ["Every line"] + MetricsSchema.events.map { "`\($0.name)`" })
        #expect(document.tables["Every line"] == MetricsDocument.table(MetricsSchema.common))
        for event in MetricsSchema.events {
            let expected = MetricsDocument.table(event.fields)
            #expect(document.tables["`\(event.name)`"] == expected, "\(expected.joined(separator: "\n"))")
        }
    }

    @Test("matches each event's output: fields, types, and presence")
    func samples() throws {
        var given: [String: [Set<String>]] = [:]
        for sample in MetricsSamples.all {
            let name = type(of: sample).name
            let text = sample.line(at: Timestamp(milliseconds: 0), worker: "w").text
            let line = try #require(try parseLines(text + "\n").first)
            let schema = MetricsSchema.common + type(of: sample).fields
            let kinds = Dictionary(uniqueKeysWithValues: schema.map { ($0.name, $0.kind) })
            for (field, value) in line {
                #expect(kinds[field].map { Self.matches(value, of: field, in: text, $0) } == true, "\(name).\(field)")
            }
            given[name, default: []].append(Set(line.keys))
        }
        #expect(Set(given.keys) == Set(MetricsSchema.events.map { $0.name }))
        for event in MetricsSchema.events {
            let lines = given[event.name] ?? []
            for field in MetricsSchema.common + event.fields {
                let occurrences = lines.count { $0.contains(field.name) }
                switch field.presence {
                case .always: #expect(occurrences == lines.count, "\(event.name).\(field.name)")
                case .sometimes: #expect(0 < occurrences && occurrences < lines.count, "\(event.name).\(field.name)")
                }
            }
        }
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
