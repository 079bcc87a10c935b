import Base
import Crypto
import HTTPClient
import HTTPServer
import Storage
import Worker

/// `version`: the program, and the libraries that it runs with.
struct ShowVersion: TextCommand {
    static let specification = CommandSpecification(
        words: ["version"],
        summary: "print the version",
        discussion: """
            Prints the program's version, its commit if it was built from one, and the versions of the libraries that \
            it runs with. --version does the same.
            """,
        options: [.jsonObject],
        exitCodes: [.success, .usage]
    )

    private let isJSON: Bool

    init(isJSON: Bool) {
        self.isJSON = isJSON
    }

    init(_ arguments: CommandArguments) {
        self.init(isJSON: arguments.has("json"))
    }

    var text: String {
        guard isJSON else {
            let lines = ["refresh-worker \(Version.withCommit)"] + Self.libraries.map { "\($0.name) \($0.version)" }
            return lines.joined(separator: "\n") + "\n"
        }
        var line = JSONLine()
        line.field("version", Version.current)
        line.fieldOrNull("commit", Version.commit)
        line.object("libraries") { object in
            for library in Self.libraries { object.field(library.name, library.version) }
        }
        return line.text + "\n"
    }

    private static var libraries: [(name: String, version: String)] {
        [
            ("libcurl", HTTPClient.curlVersion),
            ("nghttp2", HTTPClient.nghttp2Version),
            ("SQLite", SQLiteLibrary.version),
            ("OpenSSL", OpenSSL.version),
            ("libpq", PostgresLibrary.version),
            ("libmicrohttpd", MicroHTTPLibrary.version),
            ("GnuTLS", MicroHTTPLibrary.versionOfGnuTLS),
        ]
    }
}
