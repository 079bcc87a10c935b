/// The page that shows operators the state of a worker: one HTML document without external resources.
package struct StatusPage: Sendable {
    private let contents: StatusPageContents

    package init(_ contents: StatusPageContents) {
        self.contents = contents
    }

    /// The value of `Content-Security-Policy` for the page.
    package static var contentSecurityPolicy: String { "default-src 'none'" }

    package var html: String { "<!DOCTYPE html><title>\(contents.phase)</title>" }
}
