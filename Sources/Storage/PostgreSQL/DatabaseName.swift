/// A database and this program's schema in it, as errors and logs name them.
struct DatabaseName: CustomStringConvertible, Sendable {
    /// Such as "the database grants on db.example as worker".
    let database: String
    let schema: SchemaName

    /// The usual schema is not named: most databases have one.
    var description: String { schema.isStandard ? database : withSchema }
    var withSchema: String { "the schema \(schema.text) of \(database)" }
    var capitalizedFirst: String { description.capitalizedFirst }
}
