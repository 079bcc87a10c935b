import Foundation

@testable import Telemetry

/// The parsed form of docs/metrics-log.md.
struct MetricsDocument {
    struct Recipe: Sendable {
        let title: String
        let command: String
    }

    /// The rows of each table by the heading above it.
    private(set) var tables: [String: [String]] = [:]
    /// The headings above the tables, in order.
    private(set) var headings: [String] = []
    /// The shell commands, each with the heading above it.
    private(set) var recipes: [Recipe] = []

    init(path: String = #filePath) throws {
        let root = URL(filePath: path).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let text = String(decoding: try Data(contentsOf: root.appending(path: "docs/metrics-log.md")), as: UTF8.self)
        var heading = ""
        var command: [Substring]?
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
            if let lines = command {
                command = line == "```" ? nil : lines + [line]
                if command == nil { recipes.append(Recipe(title: heading, command: lines.joined(separator: "\n"))) }
            } else if line == "```sh" {
                command = []
            } else if line.hasPrefix("#") {
                heading = line.drop { $0 == "#" }.trimmingCharacters(in: .whitespaces)
            } else if line.hasPrefix("|") {
                if tables[heading] == nil { headings.append(heading) }
                tables[heading, default: []].append(String(line))
            }
        }
    }

    /// Formats fields as the rows of their table.
    static func table(_ fields: [MetricsField]) -> [String] {
        ["| field | type | given | meaning |", "|---|---|---|---|"]
            + fields.map {
                "| `\($0.name)` | \($0.kind.rawValue) | \($0.isAlwaysGiven ? "always" : "sometimes") | \($0.meaning) |"
            }
    }
}
