"""Server-side apply: who owns which field, and what an applied configuration does to an object.

    typed       how the parts of a kind merge, from its schema
    fieldset    sets of fields, in the FieldsV1 form that managedFields hold
    merging     a configuration over an object, and the removal of what its owner no longer wants
    ownership   managedFields: conflicts, transfers, entries

Owners are recorded for objects that were applied at least once. What such an object held before is owned by
`before-first-apply`; writes by other means move what they change to their own manager. Objects that nobody applies
carry no managedFields, so plain writes cost nothing.
"""
