import Base
import TestSupport

@testable import Telemetry

/// The parsed form of docs/metrics-log.md.
struct MetricsDocument {
    struct Recipe: Sendable {
        let title: String
        let command: String
    }

    /// The tables that the code makes, in the order of the document.
    static let tables: [GeneratedPage.Table] =
        [table("Every line", MetricsField.common)]
        + MetricsSamples.events.map { table("`\($0.name)`", $0.fields) }

    let tables: [GeneratedPage.Table]
    /// The shell commands, each with the heading above it.
    private(set) var recipes: [Recipe] = []

    init() throws {
        let page = try GeneratedPage("metrics-log.md", writing: Self.tables)
        tables = page.tables
        var heading = ""
        var command: [String]?
        for line in page.lines {
            if let lines = command {
                command = line == "```" ? nil : lines + [line]
                if command == nil { recipes.append(Recipe(title: heading, command: lines.joined(separator: "\n"))) }
            } else if line == "```sh" {
                command = []
            } else if line.hasPrefix("### ") {
                heading = String(line.dropFirst(4))
            }
        }
    }

    /// Makes the table of an event: neighbours that mean the same share a row.
    private static func table(_ heading: String, _ fields: [MetricsField]) -> GeneratedPage.Table {
        var rows: [[String]] = []
        for field in fields {
            if let last = rows.last, last[1...] == [field.type, field.meaning] {
                rows[rows.count - 1][0] += ", `\(field.name)`"
            } else {
                rows.append(["`\(field.name)`", field.type, field.meaning])
            }
        }
        return GeneratedPage.Table(heading, columns: ["field", "type", "meaning"], rows: rows)
    }
}

extension MetricsField {
    /// The fields that every line has.
    static let common: [MetricsField] = {
        var line = MetricsLine(json: JSONLine(), fields: [])
        line.begin(event: "", at: Timestamp(milliseconds: 0), worker: "")
        return line.fields ?? []
    }()
}
