/// Makes an element with its content.
func element(
    _ name: StaticString,
    _ attributes: KeyValuePairs<StaticString, String> = [:],
    @HTMLBuilder content: () -> HTML
) -> HTML {
    .tag(name, attributes) + content() + .endTag(name)
}

/// Puts pieces of HTML together: texts are escaped.
@resultBuilder
enum HTMLBuilder {
    static func buildExpression(_ text: String) -> HTML { HTML(text) }
    static func buildExpression(_ html: HTML) -> HTML { html }
    static func buildBlock(_ pieces: HTML...) -> HTML { .joined(pieces) }
    static func buildArray(_ pieces: [HTML]) -> HTML { .joined(pieces) }
    static func buildOptional(_ piece: HTML?) -> HTML { piece ?? .empty }
    static func buildEither(first piece: HTML) -> HTML { piece }
    static func buildEither(second piece: HTML) -> HTML { piece }
}
