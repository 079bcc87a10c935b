// swift-tools-version: 6.2
// One idea per target; a target imports only those listed above it, and each C library has one importer
// (docs/architecture.md). On Apple systems the package is the two libraries alone, for apps and for servers. So it is on
// the Swift Package Index, and on Linux without the worker's C libraries.

import PackageDescription

#if canImport(Glibc)
    import Glibc
#endif

/// Settings of every Swift target: imports stay in the file that makes them, and on Linux warnings are errors.
///
/// On Apple systems a newer SDK might deprecate a call of a version that an app is built with.
var common: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
]
#if os(Linux)
    common.insert(.treatAllWarnings(as: .error), at: 0)
#endif

/// The products that build everywhere.
let libraries = ["AccountClient", "WorkerTokens"]

let package = Package(
    name: "refresh-worker",
    // The oldest systems for an app that imports AccountClient: URLSessionTask.delegate needs them.
    platforms: [.iOS(.v15), .macOS(.v12), .tvOS(.v15), .watchOS(.v8), .visionOS(.v1)],
    products: [
        .library(name: "AccountClient", targets: ["AccountClient"]),
        .library(name: "WorkerTokens", targets: ["WorkerTokens"]),
    ],
    targets: [
        .target(
            name: "AccountClient",
            resources: [.copy("PrivacyInfo.xcprivacy")],
            swiftSettings: common
        ),
        .target(name: "WorkerTokens", swiftSettings: common),
    ],
    swiftLanguageModes: [.v6]
)

#if os(Linux)
    /// `true` if the machine has a header of each C library. `make` does not ask: SwiftPM keeps the answer, also after the
    /// libraries were installed.
    let hasLibraries = [
        "curl/curl.h", "gnutls/gnutls.h", "microhttpd.h", "nghttp2/nghttp2.h", "openssl/evp.h",
        "postgresql/libpq-fe.h", "sqlite3.h",
    ].allSatisfy { header in
        ["/usr/include", "/usr/include/x86_64-linux-gnu", "/usr/include/aarch64-linux-gnu", "/usr/local/include"]
            .contains { access("\($0)/\(header)", R_OK) == 0 }
    }
    let isForMake = Context.environment["PACKAGE_PARTS"] == "worker"
    let isForIndex = Context.environment["SPI_BUILD"] != nil
    let hasWorker = !isForIndex && (isForMake || hasLibraries)

    /// Settings of the targets that touch a C library or the system's C calls: each unsafe expression is spelled
    /// `unsafe`.
    let memorySafe: [SwiftSetting] = common + [.strictMemorySafety()]

    /// The checks of the C library's buffers, as Debian builds its programs. They need an optimised build.
    let fortified = CSetting.define("_FORTIFY_SOURCE", to: "2", .when(configuration: .release))

    package.products += [
        .executable(name: "refresh-worker", targets: ["RefreshWorker"]),
        .executable(name: "google-sandbox", targets: ["GoogleSandbox"]),
    ]
    package.targets += [
        .systemLibrary(name: "CCurl", pkgConfig: "libcurl", providers: [.apt(["libcurl4-openssl-dev"])]),
        .systemLibrary(name: "CNGHTTP2", pkgConfig: "libnghttp2", providers: [.apt(["libnghttp2-dev"])]),
        .systemLibrary(name: "CSQLite", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"])]),
        .systemLibrary(name: "CPostgres", pkgConfig: "libpq", providers: [.apt(["libpq-dev"])]),
        .systemLibrary(name: "CCrypto", pkgConfig: "libcrypto", providers: [.apt(["libssl-dev"])]),
        .systemLibrary(name: "CMicroHTTPD", pkgConfig: "libmicrohttpd", providers: [.apt(["libmicrohttpd-dev"])]),
        .systemLibrary(name: "CGnuTLS", pkgConfig: "gnutls", providers: [.apt(["libgnutls28-dev"])]),
        // Valgrind 3.19 ends at the debug information of version 5, which is clang's own choice.
        .target(name: "CProcess", cSettings: [fortified, .unsafeFlags(["-gdwarf-4"])]),
        // The Makefile passes the commit for release builds.
        .target(
            name: "CCommit",
            cSettings: [
                .define("COMMIT", to: Context.environment["REFRESH_WORKER_COMMIT"] ?? ""),
                fortified,
                .unsafeFlags(["-gdwarf-4"]),
            ]
        ),

        .target(
            name: "Base",
            dependencies: [],
            swiftSettings: memorySafe
        ),
        .target(
            name: "Crypto",
            dependencies: ["Base", "CCrypto"],
            swiftSettings: memorySafe
        ),
        .target(
            name: "HTTPClient",
            dependencies: ["Base", "CCurl", "CNGHTTP2", "Crypto"],
            swiftSettings: memorySafe
        ),
        .target(name: "GoogleOAuth", dependencies: ["Base", "Crypto", "HTTPClient"], swiftSettings: common),
        .target(
            name: "Storage",
            dependencies: ["Base", "CPostgres", "Crypto", "CSQLite"],
            swiftSettings: memorySafe
        ),
        .target(
            name: "Telemetry",
            dependencies: ["Base"],
            swiftSettings: memorySafe
        ),
        .target(
            name: "HTTPServer",
            dependencies: ["Base", "CGnuTLS", "CMicroHTTPD", "Crypto"],
            swiftSettings: memorySafe
        ),
        .target(
            name: "OpenTelemetry",
            dependencies: ["Base", "Crypto", "HTTPClient", "Telemetry"],
            swiftSettings: common
        ),
        .target(
            name: "Scheduler",
            dependencies: ["Base", "Crypto", "GoogleOAuth", "HTTPClient", "Storage", "Telemetry"],
            swiftSettings: common
        ),
        .target(
            name: "Status",
            dependencies: ["Base", "Crypto", "Scheduler", "Storage", "Telemetry"],
            // A link to docs/runbook.md.
            resources: [.embedInCode("Page/runbook.md")],
            swiftSettings: common
        ),
        .target(
            name: "Records",
            dependencies: ["Base", "Crypto", "GoogleOAuth", "Scheduler", "Storage"],
            swiftSettings: common
        ),
        .target(
            name: "Routes",
            dependencies: [
                "Base", "Crypto", "GoogleOAuth", "HTTPServer", "Records", "Scheduler", "Status", "Storage", "Telemetry",
            ],
            swiftSettings: common
        ),
        .executableTarget(name: "AccountExample", dependencies: ["AccountClient"], swiftSettings: common),
        .executableTarget(name: "WorkerTokensExample", dependencies: ["WorkerTokens"], swiftSettings: common),
        .executableTarget(
            name: "RefreshWorker",
            dependencies: [
                "Base", "CCommit", "CProcess", "Crypto", "GoogleOAuth", "HTTPClient", "HTTPServer", "OpenTelemetry",
                "Records", "Routes", "Scheduler", "Status", "Storage", "Telemetry",
            ],
            swiftSettings: memorySafe,
            // All addresses of functions are found at the start, and their table is read-only afterwards.
            linkerSettings: [.unsafeFlags(["-Xlinker", "-z", "-Xlinker", "now"])]
        ),
        .executableTarget(
            name: "GoogleSandbox",
            dependencies: ["Base", "Crypto", "HTTPServer"],
            swiftSettings: memorySafe
        ),

        .executableTarget(
            name: "BenchmarkSeed",
            dependencies: ["Crypto", "Scheduler", "Storage"],
            path: "Benchmarks/Seed",
            swiftSettings: common
        ),

        // A test target, because only tests can use what is internal, and a release build leaves it out.
        .testTarget(
            name: "TestSupport",
            dependencies: ["Base", "Crypto", "GoogleOAuth", "HTTPServer", "Storage"],
            path: "Tests/TestSupport",
            swiftSettings: common
        ),
        .testTarget(
            name: "BaseTests",
            dependencies: ["Base", "TestSupport"],
            swiftSettings: common
        ),
        .testTarget(
            name: "CryptoTests",
            dependencies: ["Base", "Crypto"],
            swiftSettings: common
        ),
        .target(
            name: "TLSListener",
            path: "Tests/TLSListener",
            linkerSettings: [.linkedLibrary("ssl"), .linkedLibrary("crypto")]
        ),
        .testTarget(
            name: "HTTPClientTests",
            dependencies: ["Base", "Crypto", "HTTPClient", "TestSupport", "TLSListener"],
            swiftSettings: common
        ),
        .testTarget(
            name: "GoogleOAuthTests",
            dependencies: ["Base", "Crypto", "GoogleOAuth", "HTTPClient", "TestSupport"],
            swiftSettings: common
        ),
        .target(name: "FaultyDisk", dependencies: ["CSQLite"], path: "Tests/FaultyDisk"),
        .testTarget(
            name: "StorageTests",
            dependencies: ["Base", "Crypto", "FaultyDisk", "Storage", "TestSupport"],
            swiftSettings: common
        ),
        .testTarget(
            name: "StatusTests",
            dependencies: ["Base", "Crypto", "Scheduler", "Status", "Storage", "Telemetry", "TestSupport"],
            swiftSettings: common
        ),
        .testTarget(
            name: "RecordsTests",
            dependencies: ["Base", "Crypto", "Records", "Storage"],
            swiftSettings: common
        ),
        .testTarget(
            name: "TelemetryTests",
            // Each event is declared where it is made.
            dependencies: [
                "Base", "HTTPClient", "RefreshWorker", "Routes", "Scheduler", "Storage", "Telemetry", "TestSupport",
            ],
            swiftSettings: common
        ),
        .testTarget(
            name: "OpenTelemetryTests",
            dependencies: ["Base", "HTTPClient", "OpenTelemetry", "Telemetry", "TestSupport"],
            swiftSettings: common
        ),
        .testTarget(
            name: "HTTPServerTests",
            dependencies: ["Base", "Crypto", "HTTPClient", "HTTPServer", "TestSupport"],
            swiftSettings: common
        ),
        .testTarget(
            name: "GoogleSandboxTests",
            dependencies: ["Base", "Crypto", "GoogleSandbox", "HTTPServer", "TestSupport"],
            swiftSettings: common
        ),
        // Apart from TestSupport, so that a change of Scheduler does not rebuild the tests of the targets below it.
        .testTarget(
            name: "SchedulerTestSupport",
            dependencies: ["Crypto", "Scheduler", "Storage"],
            path: "Tests/SchedulerTestSupport",
            swiftSettings: common
        ),
        .testTarget(
            name: "RoutesTests",
            dependencies: [
                "Base", "Crypto", "GoogleOAuth", "HTTPClient", "HTTPServer", "Records", "Routes", "Scheduler",
                "SchedulerTestSupport", "Status", "Storage", "Telemetry", "TestSupport",
            ],
            swiftSettings: common
        ),
        .testTarget(
            name: "SchedulerTests",
            dependencies: [
                "Base", "Crypto", "GoogleOAuth", "HTTPClient", "Scheduler", "SchedulerTestSupport", "Storage",
                "Telemetry", "TestSupport",
            ],
            swiftSettings: common
        ),
        .testTarget(
            name: "AccountClientTests",
            dependencies: ["AccountClient", "Base", "Storage", "TestSupport"],
            swiftSettings: common
        ),
        .testTarget(
            name: "WorkerTokensTests",
            dependencies: ["TestSupport", "WorkerTokens"],
            swiftSettings: common
        ),
        .testTarget(
            name: "RefreshWorkerTests",
            dependencies: [
                "Base", "Crypto", "GoogleOAuth", "HTTPClient", "HTTPServer", "OpenTelemetry", "Records",
                "RefreshWorker", "Routes", "Scheduler", "Status", "Storage", "Telemetry", "TestSupport",
            ],
            swiftSettings: common
        ),
        .testTarget(
            name: "FuzzTests",
            dependencies: [
                "Base", "Crypto", "GoogleOAuth", "HTTPClient", "HTTPServer", "Records", "RefreshWorker", "Routes",
                "Scheduler", "Storage", "WorkerTokens",
            ],
            exclude: ["Corpus", "run"],
            swiftSettings: common
        ),
    ]

    // For scripts/build-sanitized. The counters guide the fuzzer through the sources. With them the tests would only
    // compile and run more slowly.
    if Context.environment["PACKAGE_BUILD"] == "sanitized" {
        let counted: [SwiftSetting] = [.unsafeFlags(["-sanitize-coverage=edge,inline-8bit-counters,pc-table"])]
        // The simulations spend most of their time in these. Optimised, they take half as long and compile almost as
        // fast.
        let simulated = ["Base", "Crypto", "Storage", "Scheduler"]
        let optimised: [SwiftSetting] = [.unsafeFlags(["-O", "-assert-config", "Debug"])]
        for target in package.targets where target.type != .test {
            let isSimulated = simulated.contains(target.name)
            target.swiftSettings?.append(contentsOf: isSimulated ? counted + optimised : counted)
        }
    }

    if !hasWorker {
        package.products.removeAll { !libraries.contains($0.name) }
        package.targets.removeAll { !libraries.contains($0.name) }
    }
#endif
