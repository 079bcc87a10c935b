import Base

/// Chooses the value of highest precedence for each setting and collects the problems.
struct ConfigurationResolver {
    typealias Reader<Value> = (String) throws(InputError) -> Value
    typealias GivenValueReader<Value> = (SettingSources.GivenValue) throws(InputError) -> Value

    private let sources: SettingSources
    let files: FileReader
    private let credentialsDirectory: String?
    /// The file with the address of the database, if systemd passes it to the service and this is a command beside it.
    private let serviceDatabase: String?
    /// The same for the key ring, unless a setting names one.
    private(set) var serviceKeyRing: String?
    private(set) var problems: [Setting.Problem]

    init(_ inputs: ConfigurationInputs) {
        sources = SettingSources(inputs)
        files = inputs.files
        credentialsDirectory = inputs.credentialsDirectory
        let isBesideService = sources.isOfInstallation && credentialsDirectory == nil
        serviceDatabase = isBesideService ? inputs.serviceDatabase : nil
        problems = sources.problems
        serviceKeyRing = isBesideService && !isGiven(.keyFile) ? inputs.serviceKeyRing : nil
    }

    var file: String? { sources.file }

    /// Returns the path of a credential that systemd passed, if it exists.
    func credential(_ name: String) -> String? {
        guard let credentialsDirectory else { return nil }
        let path = credentialsDirectory + "/" + name
        return files.exists(path) ? path : nil
    }

    /// Returns the value of a setting, or its default, also after recording a problem.
    mutating func value<Value>(
        of name: Setting.Name,
        _ read: Reader<Value>,
        insteadOfDefault replacement: String? = nil
    ) -> Value {
        value(of: name, insteadOfDefault: replacement) { given throws(InputError) in try read(given.value) }
    }

    /// Returns the value of a setting whose reader needs to know the origin of the value.
    mutating func value<Value>(
        of name: Setting.Name,
        insteadOfDefault replacement: String?,
        _ read: GivenValueReader<Value>
    ) -> Value {
        let origin = SettingOrigin.defaultValue(of: name)
        if let value = optional(name, read) { return value }
        if !isGiven(name), let replacement,
            let value = check(SettingSources.GivenValue(value: replacement, origin: origin), read)
        {
            return value
        }
        guard let text = Setting.named(name)?.defaultValue,
            let value = check(SettingSources.GivenValue(value: text, origin: origin), read)
        else { preconditionFailure("the default of \(name) is missing or invalid") }
        return value
    }

    /// Returns the value of a setting that is a number of seconds.
    mutating func seconds(_ name: Setting.Name, in range: ClosedRange<Int>) -> Duration {
        value(of: name) { text throws(InputError) in try SettingValue.seconds(text, in: range) }
    }

    /// Returns the value of a setting without a default.
    mutating func optional<Value>(_ name: Setting.Name, _ read: Reader<Value>) -> Value? {
        optional(name) { (given: SettingSources.GivenValue) throws(InputError) in try read(given.value) }
    }

    private mutating func optional<Value>(_ name: Setting.Name, _ read: GivenValueReader<Value>) -> Value? {
        var chosen: Value?
        for layer in sources.layers {
            for given in layer[name] ?? [] {
                // Each one is checked, although only the first counts.
                let value = check(given, read)
                if chosen == nil { chosen = value }
            }
        }
        return chosen
    }

    /// Returns all values of a list from the layer of highest precedence that has any.
    mutating func list<Element>(_ name: Setting.Name, _ read: Reader<[Element]>) -> [Element] {
        var chosen: [Element] = []
        for layer in sources.layers {
            let elements = (layer[name] ?? []).flatMap { check($0, read) ?? [] }
            if chosen.isEmpty { chosen = elements }
        }
        return chosen
    }

    /// Returns all client ids from the layer of highest precedence that has any, without duplicates.
    mutating func clientIDs() -> [String] {
        var chosen = list(.clientID, SettingValue.clientIDs)
        if !isGiven(.clientID) {
            chosen = credentialClientIDs()
        }
        var seen: Set<String> = []
        return chosen.filter { seen.insert($0).inserted }
    }

    /// Returns the client ids in the credential, one per line, or none without that credential.
    private mutating func credentialClientIDs() -> [String] {
        guard let credentialsDirectory else { return [] }
        let path = credentialsDirectory + "/client-id"
        let content: [UInt8]
        do throws(InputError) {
            content = try files.read(path)
        } catch {
            if !error.isMissing {
                problems.append(
                    .init(origin: "credential client-id", message: error.message, mayPass: error.mayPass)
                )
            }
            return []
        }
        guard let text = String(validating: content, as: UTF8.self) else {
            problems.append(.init(origin: "credential client-id", message: "is not UTF-8 text"))
            return []
        }
        var identifiers: [String] = []
        let lines = text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
        for (index, line) in lines.enumerated() {
            let trimmed = String(line.trimmingBlanks())
            guard !trimmed.isEmpty else { continue }
            let given = SettingSources.GivenValue(value: trimmed, origin: .clientIDCredential(line: index + 1))
            identifiers += check(given, SettingValue.clientIDs) ?? []
        }
        return identifiers
    }

    /// Records that a setting is of no use without another one.
    mutating func report(_ name: Setting.Name, needs need: String) {
        problems.append(.init(origin: "--\(name.rawValue)", message: "needs \(need)"))
    }

    private func isGiven(_ name: Setting.Name) -> Bool {
        sources.layers.contains { $0[name] != nil }
    }

    private mutating func check<Value>(_ given: SettingSources.GivenValue, _ read: Reader<Value>) -> Value? {
        check(given) { (given: SettingSources.GivenValue) throws(InputError) in try read(given.value) }
    }

    private mutating func check<Value>(_ given: SettingSources.GivenValue, _ read: GivenValueReader<Value>) -> Value? {
        do throws(InputError) {
            try InputText.checkText(given.value)
            return try read(given)
        } catch {
            // What a file holds is configuration, although an argument names it.
            let namesFile = given.value.hasPrefix(DatabaseLocation.urlFilePrefix)
            let isOfArgument = given.origin.isArgument && !namesFile
            problems.append(.init(origin: given.origin.description, message: error.message, isOfArgument: isOfArgument))
            return nil
        }
    }
}

extension ConfigurationResolver {
    /// Returns every setting with the value that counts and its source, before the value is parsed.
    func shown() -> [ShownSetting] {
        Setting.all.map { setting in
            if let given = sources.chosen(setting.name) { return given }
            if let name = setting.credential, let path = credential(name) {
                return ShownSetting(name: setting.name, source: .credential, values: [path])
            }
            if setting.name == .database, let serviceDatabase {
                return ShownSetting(name: .database, source: .credential, values: [serviceDatabase])
            }
            guard let standard = setting.defaultValue else {
                return ShownSetting(name: setting.name, source: .unset, values: [])
            }
            return ShownSetting(name: setting.name, source: .standard, values: [standard])
        }
    }

    /// Returns the location of the database, for which the credential `database-url` precedes the default.
    mutating func database() -> DatabaseLocation {
        let files = files
        var replacement: String?
        if let path = credential("database-url") ?? serviceDatabase {
            replacement = DatabaseLocation.urlFilePrefix + path
        }
        let serviceDatabase = serviceDatabase
        return value(of: .database, insteadOfDefault: replacement) { given throws(InputError) in
            if let serviceDatabase, given.value == replacement, !files.exists(serviceDatabase) {
                throw InputError("no \(serviceDatabase): \(Installation.advice)")
            }
            return try DatabaseLocation.read(given.value, isArgument: given.origin.isArgument, files: files)
        }
    }
}
