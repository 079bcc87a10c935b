import Base
import Crypto
import HTTPClient
import HTTPServer
import Storage
import Worker

/// The output of `--version`: the program, and the libraries that it runs with.
package enum VersionReport {
    package static var text: String {
        (["refresh-worker \(Version.withCommit)"] + libraries.map { "\($0.name) \($0.version)" }).joined(
            separator: "\n"
        )
    }

    /// The same as a JSON object.
    package static var json: String {
        var line = JSONLine()
        line.field("version", Version.current)
        line.fieldOrNull("commit", Version.commit)
        line.object("libraries") { object in
            for library in libraries { object.field(library.name, library.version) }
        }
        return line.text
    }

    private static var libraries: [(name: String, version: String)] {
        [
            ("libcurl", CurlLibrary.version),
            ("nghttp2", CurlLibrary.versionOfHTTP2Framing),
            ("SQLite", SQLiteLibrary.version),
            ("OpenSSL", OpenSSLLibrary.version),
            ("libpq", PostgresLibrary.version),
            ("libmicrohttpd", MicroHTTPLibrary.version),
            ("GnuTLS", MicroHTTPLibrary.versionOfGnuTLS),
        ]
    }
}
