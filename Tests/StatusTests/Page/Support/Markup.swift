/// The tags of a page, read as a browser reads them where values are well escaped.
struct Markup {
    struct Tag: Equatable {
        var name: Substring
        var attributes: [(name: Substring, value: Substring)]

        static func == (left: Tag, right: Tag) -> Bool {
            left.name == right.name && left.attributes.map(\.name) == right.attributes.map(\.name)
        }
    }

    let tags: [Tag]

    init(_ html: String) {
        // The texts of the style and of the script are not markup.
        let page = html.replacing(/(?s)(<style>|<script[^>]*>).*?(<\/style>|<\/script>)/) { "\($0.1)\($0.2)" }
        tags = page.matches(of: /<(\/?[a-z0-9]+)((?:\s[a-zA-Z-]+(?:="[^"]*")?)*)>/).map { match in
            let attributes = match.2.matches(of: /\s([a-zA-Z-]+)(?:="([^"]*)")?/).map { ($0.1, $0.2 ?? "") }
            return Tag(name: match.1, attributes: attributes)
        }
    }

    var attributes: [(name: Substring, value: Substring)] { tags.flatMap(\.attributes) }

    func values(of attribute: String) -> [String] {
        attributes.filter { $0.name == attribute }.map { String($0.value) }
    }

    func count(of tag: String) -> Int { tags.count { $0.name == tag } }

    /// The elements that are open at the end, or were closed in another order; empty for a correct page.
    var unbalanced: [Substring] {
        var open: [Substring] = []
        for tag in tags where !["meta", "link", "input", "circle"].contains(tag.name) {
            if tag.name.hasPrefix("/") {
                guard open.popLast() == tag.name.dropFirst() else { return [tag.name] }
            } else {
                open.append(tag.name)
            }
        }
        return open
    }
}
