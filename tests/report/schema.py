"""The parts of a value that a JSON schema forbids, by the keywords of the schema of audits."""

KINDS = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "null": type(None),
}


def breaches(value, schema, place="audit"):
    """List the places where a value is not what its schema says."""
    if "enum" in schema:
        return [] if value in schema["enum"] else [f"{place} is {value!r}"]
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    fits = [isinstance(value, KINDS[kind]) for kind in kinds]
    if not any(fits) or (isinstance(value, bool) and "boolean" not in kinds):
        return [f"{place} is {value!r}, not {kinds}"]
    found = []
    if isinstance(value, dict):
        known = schema.get("properties", {})
        found += [f"{place} lacks {key}" for key in schema.get("required", ()) if key not in value]
        if schema.get("additionalProperties") is False:
            found += [f"{place} has {key}" for key in value if key not in known]
        for key in set(known) & set(value):
            found += breaches(value[key], known[key], f"{place}.{key}")
    if isinstance(value, list) and "items" in schema:
        for i, one in enumerate(value):
            found += breaches(one, schema["items"], f"{place}[{i}]")
    return found
