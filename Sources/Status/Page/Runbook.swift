/// The sections of docs/runbook.md, which is part of the program.
///
/// A browser on the internal listener cannot open the file: it is on the worker's machine or in the source. So the page
/// shows the sections that its concerns name.
struct Runbook: Sendable {
    /// A section: an introduction, and a list of what to look at, what to do and what not to do.
    struct Section: Equatable, Sendable {
        var introduction = ""
        var items: [String] = []
    }

    static let shared = Runbook(String(decoding: PackageResources.runbook_md, as: UTF8.self))

    let sections: [String: Section]

    /// Reads the headings of the third level, with the paragraphs and the list items below them.
    init(_ markdown: String) {
        var sections: [String: Section] = [:]
        var kind: String?
        for line in markdown.split(separator: "\n") {
            if line.hasPrefix("#") {
                kind = line.hasPrefix("### ") ? String(line.dropFirst(4)) : nil
            } else if let kind {
                sections[kind, default: Section()].append(line)
            }
        }
        self.sections = sections
    }
}

extension Runbook.Section {
    fileprivate mutating func append(_ line: Substring) {
        if line.hasPrefix("- ") {
            items.append(String(line.dropFirst(2)))
        } else if items.isEmpty {
            introduction += (introduction.isEmpty ? "" : " ") + line
        } else {
            items[items.count - 1] += " " + line.drop { $0 == " " }
        }
    }
}
