import Foundation

/// The tables of a page of docs/, some of which are made from the code.
///
///     let page = try GeneratedPage("settings.md", writing: [table])
///     #expect(page.tables == [table], "run: make pages")
package struct GeneratedPage {
    package struct Table: Equatable, Sendable {
        /// The heading above the table.
        package let heading: String
        package let rows: [String]

        package init(_ heading: String, columns: [String], rows: [[String]]) {
            self.heading = heading
            let lines = ([columns] + rows).map { "| \($0.joined(separator: " | ")) |" }
            self.rows = [lines[0], "|" + String(repeating: "---|", count: columns.count)] + lines.dropFirst()
        }

        fileprivate init(heading: String, rows: [String]) {
            self.heading = heading
            self.rows = rows
        }
    }

    package private(set) var tables: [Table] = []
    package private(set) var lines: [String] = []

    /// Reads a page, with the given tables in place of those with their headings if `make pages` runs.
    package init(_ name: String, writing made: [Table]) throws {
        let folder = URL(filePath: #filePath).appending(path: "../../../docs").standardized
        let file = folder.appending(path: name)
        let text = try String(contentsOf: file, encoding: .utf8)
        let writes = ProcessInfo.processInfo.environment["WRITE_PAGES"] != nil
        var heading = ""
        var isCode = false
        var old: [String] = []
        for line in text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init) {
            if !isCode, line.hasPrefix("|") {
                old.append(line)
                continue
            }
            if !old.isEmpty {
                let new = writes ? made.first { $0.heading == heading } : nil
                let table = new ?? Table(heading: heading, rows: old)
                tables.append(table)
                lines += table.rows
                old = []
            }
            if line.hasPrefix("```") { isCode.toggle() }
            if !isCode, line.hasPrefix("#") { heading = String(line.trimmingPrefix { $0 == "#" || $0 == " " }) }
            lines.append(line)
        }
        if writes { try lines.joined(separator: "\n").write(to: file, atomically: true, encoding: .utf8) }
    }
}
