// swift-tools-version: 6.2
// One idea per target; a target imports only those listed above it, and each C library has one importer
// (docs/architecture.md).

import PackageDescription

/// Settings of every Swift target: warnings are errors, imports stay in the file that makes them.
let common: [SwiftSetting] = [
    .treatAllWarnings(as: .error),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
]

/// Settings of the targets that touch a C library or the system's C calls: each unsafe expression is spelled `unsafe`.
let atTheEdge: [SwiftSetting] = common + [.strictMemorySafety()]

let package = Package(
    name: "refresh-worker",
    // The oldest systems for an app that imports AccountClient: URLSessionTask.delegate needs them.
    platforms: [.iOS(.v15), .macOS(.v12)],
    products: [
        .executable(name: "refresh-worker", targets: ["RefreshWorker"]),
        .executable(name: "google-sandbox", targets: ["GoogleSandbox"]),
        .library(name: "AccountClient", targets: ["AccountClient"]),
    ],
    targets: [
        .systemLibrary(name: "CCurl", pkgConfig: "libcurl", providers: [.apt(["libcurl4-openssl-dev"])]),
        .systemLibrary(name: "CNGHTTP2", pkgConfig: "libnghttp2", providers: [.apt(["libnghttp2-dev"])]),
        .systemLibrary(name: "CSQLite", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"])]),
        .systemLibrary(name: "CPostgres", pkgConfig: "libpq", providers: [.apt(["libpq-dev"])]),
        .systemLibrary(name: "CCrypto", pkgConfig: "libcrypto", providers: [.apt(["libssl-dev"])]),
        .systemLibrary(name: "CMicroHTTPD", pkgConfig: "libmicrohttpd", providers: [.apt(["libmicrohttpd-dev"])]),
        .systemLibrary(name: "CGnuTLS", pkgConfig: "gnutls", providers: [.apt(["libgnutls28-dev"])]),
        // Valgrind 3.19 ends at the debug information of version 5, which is clang's own choice.
        .target(name: "CProcess", cSettings: [.unsafeFlags(["-gdwarf-4"])]),
        // The Makefile passes the commit for release builds.
        .target(
            name: "CCommit",
            cSettings: [
                .define("COMMIT", to: Context.environment["REFRESH_WORKER_COMMIT"] ?? ""),
                .unsafeFlags(["-gdwarf-4"]),
            ]
        ),

        .target(name: "Clocks", swiftSettings: atTheEdge),
        .target(name: "JSON", dependencies: ["Clocks"], swiftSettings: common),
        .target(name: "Scheduler", dependencies: ["Clocks"], swiftSettings: common),
        .target(name: "Secrets", dependencies: ["CCrypto", "Clocks", "JSON"], swiftSettings: atTheEdge),
        .target(name: "HTTP2", dependencies: ["CNGHTTP2", "Secrets"], swiftSettings: atTheEdge),
        .target(name: "HTTPClient", dependencies: ["CCurl", "Clocks", "HTTP2", "Secrets"], swiftSettings: atTheEdge),
        .target(name: "GoogleOAuth", dependencies: ["Clocks", "HTTPClient", "JSON", "Secrets"], swiftSettings: common),
        .target(name: "Store", dependencies: ["Clocks", "Secrets"], swiftSettings: common),
        .target(
            name: "SQLiteStore",
            dependencies: ["CSQLite", "Clocks", "Secrets", "Store"],
            swiftSettings: atTheEdge
        ),
        .target(
            name: "PostgresStore",
            dependencies: ["CPostgres", "Clocks", "Secrets", "Store"],
            swiftSettings: atTheEdge
        ),
        .target(name: "Observability", dependencies: ["Clocks", "JSON"], swiftSettings: atTheEdge),
        .target(
            name: "HTTPServer",
            dependencies: ["CGnuTLS", "CMicroHTTPD", "Clocks", "Secrets"],
            swiftSettings: atTheEdge
        ),
        .target(
            name: "RefreshEngine",
            dependencies: ["Clocks", "GoogleOAuth", "JSON", "Observability", "Scheduler", "Secrets", "Store"],
            swiftSettings: common
        ),
        .target(
            name: "Judgement",
            dependencies: ["Clocks", "JSON", "Observability", "Secrets", "Store"],
            swiftSettings: common
        ),
        .target(
            name: "StatusPage",
            dependencies: ["Clocks", "Judgement", "Observability", "Secrets", "Store"],
            // A link to docs/runbook.md.
            resources: [.embedInCode("runbook.md")],
            swiftSettings: common
        ),
        .target(
            name: "Notices",
            dependencies: ["Clocks", "HTTPClient", "JSON", "Observability", "Scheduler", "Secrets", "Store"],
            swiftSettings: common
        ),
        .target(
            name: "AccountAPI",
            dependencies: [
                "Clocks", "GoogleOAuth", "HTTPServer", "JSON", "Judgement", "Observability", "RefreshEngine", "Secrets",
                "StatusPage", "Store",
            ],
            swiftSettings: common
        ),
        .target(name: "AccountClient", swiftSettings: common),
        .executableTarget(name: "AccountExample", dependencies: ["AccountClient"], swiftSettings: common),
        .target(
            name: "WorkerConfiguration",
            dependencies: [
                "AccountAPI", "CCommit", "Clocks", "GoogleOAuth", "HTTPClient", "HTTPServer", "JSON", "Observability",
                "PostgresStore", "Secrets", "Store",
            ],
            swiftSettings: atTheEdge
        ),
        .target(
            name: "WorkerLifecycle",
            dependencies: [
                "AccountAPI", "CProcess", "Clocks", "GoogleOAuth", "HTTPClient", "HTTPServer", "JSON",
                "Judgement", "Notices", "Observability", "PostgresStore", "RefreshEngine", "SQLiteStore", "Secrets",
                "Store", "WorkerConfiguration",
            ],
            swiftSettings: atTheEdge
        ),
        .target(
            name: "WorkerCommands",
            dependencies: [
                "AccountAPI", "Clocks", "GoogleOAuth", "HTTPClient", "HTTPServer", "JSON", "Judgement",
                "Observability", "PostgresStore", "RefreshEngine", "SQLiteStore", "Scheduler", "Secrets", "Store",
                "WorkerConfiguration", "WorkerLifecycle",
            ],
            swiftSettings: atTheEdge
        ),
        .target(
            name: "AWSImport",
            dependencies: [
                "Clocks", "HTTPClient", "JSON", "Observability", "Scheduler", "Secrets", "Store", "WorkerCommands",
                "WorkerConfiguration", "WorkerLifecycle",
            ],
            swiftSettings: common
        ),
        .executableTarget(
            name: "RefreshWorker",
            dependencies: ["AWSImport", "JSON", "Store", "WorkerCommands", "WorkerConfiguration", "WorkerLifecycle"],
            swiftSettings: common
        ),
        .executableTarget(
            name: "GoogleSandbox",
            dependencies: ["Clocks", "HTTPServer", "JSON", "Secrets"],
            swiftSettings: atTheEdge
        ),

        .executableTarget(
            name: "BenchmarkSeed",
            dependencies: [
                "Clocks", "PostgresStore", "RefreshEngine", "SQLiteStore", "Scheduler", "Secrets", "Store",
            ],
            path: "Benchmarks/Seed",
            swiftSettings: common
        ),

        .target(
            name: "TestSupport",
            dependencies: ["Clocks", "GoogleOAuth", "Secrets"],
            path: "Tests/TestSupport",
            swiftSettings: common
        ),
        .testTarget(name: "JSONTests", dependencies: ["Clocks", "JSON"], swiftSettings: common),
        .testTarget(name: "SchedulerTests", dependencies: ["Clocks", "Scheduler"], swiftSettings: common),
        .testTarget(
            name: "StatusPageTests",
            dependencies: ["Clocks", "Judgement", "Observability", "Secrets", "StatusPage", "Store"],
            swiftSettings: common
        ),
        .testTarget(name: "SecretsTests", dependencies: ["Clocks", "JSON", "Secrets"], swiftSettings: common),
        .target(
            name: "TLSListener",
            path: "Tests/TLSListener",
            linkerSettings: [.linkedLibrary("ssl"), .linkedLibrary("crypto")]
        ),
        .testTarget(
            name: "HTTPClientTests",
            dependencies: ["Clocks", "HTTPClient", "Secrets", "TLSListener", "TestSupport"],
            swiftSettings: common
        ),
        .testTarget(
            name: "GoogleOAuthTests",
            dependencies: ["Clocks", "GoogleOAuth", "HTTPClient", "JSON", "Secrets", "TestSupport"],
            swiftSettings: common
        ),
        .target(name: "FaultyDisk", dependencies: ["CSQLite"], path: "Tests/FaultyDisk"),
        .testTarget(
            name: "StoreTests",
            dependencies: ["Clocks", "FaultyDisk", "PostgresStore", "SQLiteStore", "Secrets", "Store", "TestSupport"],
            swiftSettings: common
        ),
        .testTarget(
            name: "JudgementTests",
            dependencies: ["Clocks", "JSON", "Judgement", "Observability", "Secrets", "Store"],
            swiftSettings: common
        ),
        .testTarget(
            name: "ObservabilityTests",
            dependencies: ["Clocks", "JSON", "Observability", "TestSupport"],
            swiftSettings: common
        ),
        .testTarget(
            name: "HTTPServerTests",
            dependencies: ["Clocks", "HTTPClient", "HTTPServer", "Secrets", "TestSupport"],
            swiftSettings: common
        ),
        .testTarget(
            name: "GoogleSandboxTests",
            dependencies: ["Clocks", "GoogleSandbox", "HTTPServer", "JSON", "Secrets", "TestSupport"],
            swiftSettings: common
        ),
        .testTarget(
            name: "RefreshEngineTests",
            dependencies: [
                "Clocks", "GoogleOAuth", "JSON", "Observability", "RefreshEngine", "Scheduler", "Secrets", "Store",
                "TestSupport",
            ],
            swiftSettings: common
        ),
        .testTarget(
            name: "AccountAPITests",
            dependencies: [
                "AccountAPI", "Clocks", "GoogleOAuth", "HTTPServer", "JSON", "Judgement", "Observability",
                "RefreshEngine", "Secrets", "StatusPage", "Store", "TestSupport",
            ],
            swiftSettings: common
        ),
        .testTarget(
            name: "NoticesTests",
            dependencies: [
                "Clocks", "HTTPClient", "JSON", "Notices", "Observability", "Secrets", "Store", "TestSupport",
            ],
            swiftSettings: common
        ),
        .testTarget(
            name: "AccountClientTests",
            dependencies: ["AccountClient", "Clocks", "Store", "TestSupport"],
            swiftSettings: common
        ),
        .testTarget(
            name: "RefreshWorkerTests",
            dependencies: [
                "AWSImport", "AccountAPI", "Clocks", "GoogleOAuth", "HTTPClient", "HTTPServer", "JSON",
                "Judgement", "Notices", "Observability", "PostgresStore", "RefreshEngine", "RefreshWorker",
                "SQLiteStore", "Scheduler", "Secrets", "Store", "TestSupport", "WorkerCommands",
                "WorkerConfiguration", "WorkerLifecycle",
            ],
            swiftSettings: common
        ),
        .testTarget(
            name: "FuzzTests",
            dependencies: [
                "AccountAPI", "Clocks", "GoogleOAuth", "HTTP2", "HTTPClient", "HTTPServer", "JSON", "PostgresStore",
                "RefreshEngine", "Secrets", "Store", "WorkerCommands", "WorkerConfiguration",
            ],
            exclude: ["Corpus", "run"],
            swiftSettings: common
        ),
    ],
    swiftLanguageModes: [.v6]
)
