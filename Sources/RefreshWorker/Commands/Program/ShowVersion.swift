import Base
import Crypto
import HTTPClient
import HTTPServer
import Storage

extension Command {
    /// `version`: the program, and the libraries that it runs with.
    static let showVersion = Command(
        words: ["version"],
        summary: "print the version",
        discussion: """
            Prints the program's version, its commit if it was built from one, and the versions of the libraries that \
            it runs with. --version does the same.
            """,
        options: [.jsonObject],
        exitCodes: [.success, .usage],
        text: { arguments in
            let libraries = [
                ("libcurl", HTTPClient.curlVersion), ("nghttp2", HTTPClient.nghttp2Version),
                ("SQLite", SQLiteStore.libraryVersion), ("OpenSSL", OpenSSL.version),
                ("libpq", PostgresStore.libraryVersion), ("libmicrohttpd", HTTPServer.microHTTPVersion),
                ("GnuTLS", HTTPServer.gnuTLSVersion),
            ]
            guard arguments.has("json") else {
                return "refresh-worker \(Version.withCommit)\n" + libraries.map { "\($0) \($1)\n" }.joined()
            }
            var line = JSONLine()
            line.field("version", Version.current)
            line.fieldOrNull("commit", Version.commit)
            line.object("libraries") { object in
                for (name, version) in libraries { object.field(name, version) }
            }
            return line.text + "\n"
        },
        run: nil
    )
}
