import Foundation

/// The part of docs/openapi.yaml that the tests compare with the code.
///
/// It is read line by line and relies on the layout of the file: two spaces a level, and each route's responses written
/// out.
struct OpenAPIDescription {
    struct Operation: Hashable {
        /// The method and the path, such as "GET /v1/user/me".
        let name: String
        var tags: Set<String> = []
        var statuses: Set<Int> = []
    }

    private(set) var operations: [Operation] = []
    let lines: [Substring]

    init() throws {
        let root = URL(filePath: #filePath).appending(path: "../../../..").standardized
        let text = try String(contentsOf: root.appending(path: "docs/openapi.yaml"), encoding: .utf8)
        lines = text.split(separator: "\n")
        let paths = lines.drop { $0 != "paths:" }.dropFirst().prefix { $0.hasPrefix(" ") }
        var path = ""
        for line in paths {
            let words = line.drop { $0 == " " }
            switch line.count - words.count {
            case 2: path = String(words.dropLast())
            case 4: operations.append(Operation(name: "\(words.dropLast().uppercased()) \(path)"))
            case 6 where words.hasPrefix("tags: ["):
                let tags = words.dropFirst("tags: [".count).dropLast().split(separator: ", ").map(String.init)
                operations[operations.count - 1].tags = Set(tags)
            case 8 where words.hasPrefix("\""):
                guard let status = Int(words.filter(\.isNumber)) else { continue }
                operations[operations.count - 1].statuses.insert(status)
            default: continue
            }
        }
    }

    func operations(tagged tag: String) -> [Operation] { operations.filter { $0.tags.contains(tag) } }
}
